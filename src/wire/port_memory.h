// PortMemory: the memory of a port, registered in two parts: landing, which peers write, and that of outgoing messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>

#include "base/result.h"

namespace fccl::core {

enum class MemoryId : uint32_t;
class Transport;
struct PortShape;

// A port owns it, and afterwards the port's endpoint, until the transport has ended. The network writes into landing, and the
// lane's thread into the rest: stages, entries, credits and notices.
class PortMemory {
 public:
  // Throws std::bad_alloc if there is too little memory.
  explicit PortMemory(const PortShape& shape);

  // Lets the network use both parts; after an error it may use neither.
  Result<void> register_with(Transport& transport);
  // Gives the pages back to the system as well, but keeps their addresses.
  void release_from(Transport& transport) const;
  MemoryId landing_id() const { return landing_id_; }
  MemoryId outgoing_id() const { return outgoing_id_; }

  std::byte* landing(int peer, uint64_t message) const {
    return memory_.get() + (static_cast<size_t>(peer) * window_ + (message & (window_ - 1))) * slot_bytes_;
  }
  std::byte* stage(int number) const { return memory_.get() + stages_at_ + number * slot_bytes_; }
  std::byte* entry(int peer, int parity) const { return memory_.get() + entries_at_ + (peer * 2 + parity) * entry_bytes_; }
  std::byte* credit(int peer) const;
  std::byte* notice(int number) const { return memory_.get() + notices_at_ + number * entry_bytes_; }

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };

  size_t window_;
  size_t slot_bytes_;
  size_t entry_bytes_;
  size_t stages_at_, entries_at_, credits_at_, notices_at_, bytes_;
  std::unique_ptr<std::byte, Free> memory_;
  MemoryId landing_id_{};
  MemoryId outgoing_id_{};
};

}  // namespace fccl::core
