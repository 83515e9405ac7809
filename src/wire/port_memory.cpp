// Lays out the memory of a port, and registers its two parts.
#include "wire/port_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <new>

#include "base/check.h"
#include "base/rounding.h"
#include "os/memory.h"
#include "wire/entry.h"
#include "wire/port_shape.h"
#include "wire/transport.h"

namespace fccl::core {

PortMemory::PortMemory(const PortShape& shape)
    : window_(static_cast<size_t>(shape.window)),
      slot_bytes_(shape.slot_bytes),
      entry_bytes_(sizeof(EntryMessage) + shape.payload_bytes),
      // A lane of one member has no landing, but zero bytes cannot be registered.
      stages_at_(rounded_up(std::max<size_t>(shape.ranks.size() * window_ * slot_bytes_, 1), kPageBytes)),
      entries_at_(stages_at_ + shape.stages * slot_bytes_),
      credits_at_(entries_at_ + (shape.notices > 0 ? 0 : 2 * shape.ranks.size() * entry_bytes_)),
      notices_at_(credits_at_ + shape.ranks.size() * sizeof(EntryMessage)),
      bytes_(rounded_up(notices_at_ + static_cast<size_t>(shape.outgoing_notices()) * entry_bytes_ + 1, kPageBytes)) {
  check(slot_bytes_ > 0 && slot_bytes_ % 64 == 0 && shape.stages >= 1, "slots are multiples of 64 bytes");
  memory_.reset(static_cast<std::byte*>(std::aligned_alloc(kPageBytes, bytes_)));
  if (memory_ == nullptr) throw std::bad_alloc();
}

Result<void> PortMemory::register_with(Transport& transport) {
  const std::span<std::byte> all(memory_.get(), bytes_);
  FCCL_TRY_ASSIGN(const MemoryId landing, transport.register_memory(all.first(stages_at_), PeersMay::write));
  const Result<MemoryId> outgoing = transport.register_memory(all.subspan(stages_at_), PeersMay::nothing);
  if (!outgoing) {
    transport.release_memory(landing);
    return fail(outgoing.error());
  }
  landing_id_ = landing;
  outgoing_id_ = *outgoing;
  return {};
}

void PortMemory::release_from(Transport& transport) const {
  transport.release_memory(landing_id_);
  transport.release_memory(outgoing_id_);
  madvise(memory_.get(), bytes_, MADV_DONTNEED);
}

std::byte* PortMemory::credit(int peer) const { return memory_.get() + credits_at_ + peer * sizeof(EntryMessage); }

}  // namespace fccl::core
