// Posts and takes the notices of a NoticeLane, and sends slices as messages of its wire.
#include "transfers/wire_pair.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "wire/lane.h"
#include "wire/notice_lane.h"

namespace fccl::core {

WirePair::WirePair(NoticeLane& lane, int member, size_t eager_bytes)
    : notices_(lane),
      wire_(lane.wire()),
      member_(member),
      eager_bytes_(std::min(eager_bytes, wire_.payload_bytes() - sizeof(Notice))) {}

bool WirePair::post_eager(const Notice& notice, const void* payload, size_t bytes) {
  if (bytes > eager_bytes_ || !notices_.can_notify_eagerly(member_)) return false;
  notices_.notify_eagerly(member_, std::as_bytes(std::span(&notice, 1)), {static_cast<const std::byte*>(payload), bytes});
  return true;
}

bool WirePair::can_post() { return notices_.can_notify(member_); }

void WirePair::post(const Notice& notice, const void* /*lent*/) {
  notices_.notify(member_, std::as_bytes(std::span(&notice, 1)), {});
}

std::optional<TransferPair::Incoming> WirePair::next() {
  const std::span<const std::byte> message = notices_.noticed(member_);
  if (message.empty()) return std::nullopt;
  Incoming next{{}, message.data() + sizeof(Notice)};
  std::memcpy(&next.notice, message.data(), std::min(message.size(), sizeof next.notice));
  // A message with fewer bytes than it announces matches no receive.
  if (next.notice.kind == Notice::kEager && message.size() != sizeof(Notice) + next.notice.envelope().bytes())
    next.notice.dtype = fcclNumTypes;
  return next;
}

const std::byte* WirePair::keep(const Incoming& /*next*/, std::vector<std::byte>& room) const {
  const std::span<const std::byte> message = notices_.noticed(member_);
  room.assign(message.begin() + static_cast<ptrdiff_t>(std::min(message.size(), sizeof(Notice))), message.end());
  return room.data();
}

void WirePair::take() { notices_.take(member_); }

void WirePair::release(const Notice& /*notice*/) { notices_.release(member_); }

TransferPair::Moved WirePair::send(const std::byte* source, size_t bytes, int most, [[maybe_unused]] CopyBytes put) {
  Moved moved;
  for (; moved.slices < most && moved.bytes < bytes; ++moved.slices) {
    const size_t size = std::min(wire_.slot_bytes(), bytes - moved.bytes);
    if (!wire_.can_send(member_, size)) break;
    std::byte* const stage = wire_.take_stage();
    if (stage == nullptr) break;
    copy_bytes(stage, source + moved.bytes, size);
    wire_.send(member_, size);
    moved.bytes += size;
  }
  return moved;
}

TransferPair::Moved WirePair::receive(std::byte* target, size_t bytes, int most, CopyBytes copy) {
  Moved moved;
  for (; moved.slices < most && moved.bytes < bytes; ++moved.slices) {
    const size_t size = std::min(wire_.slot_bytes(), bytes - moved.bytes);
    if (!wire_.landing().has_arrived(member_, size)) break;
    copy(target + moved.bytes, wire_.landing().message(member_), size);
    wire_.landing().receive(member_, size);
    wire_.landing().consume(member_);
    moved.bytes += size;
  }
  return moved;
}

}  // namespace fccl::core
