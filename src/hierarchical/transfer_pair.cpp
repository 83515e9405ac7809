// Dispatches each step to the segment or to the network.
#include "hierarchical/transfer_pair.h"

#include <algorithm>
#include <cstring>

#include "kernels/copy.h"

namespace fccl::core {
namespace {

// Trusts the sender's word.
bool is_beside(const Notice& notice) {
  return notice.kind != Notice::kEager || notice.envelope().bytes() <= sizeof NoticeLine::beside;
}

}  // namespace

TransferPair::TransferPair(WireLane& wire, int member, size_t eager_bytes)
    : wire_(&wire), member_(member), eager_bytes_(std::min(eager_bytes, wire.payload_bytes() - sizeof(Notice))) {}

void TransferPair::post_eager(const Notice& notice, const void* payload, size_t bytes) {
  const std::span<const std::byte> head = std::as_bytes(std::span(&notice, 1));
  const bool is_eager = notice.kind == Notice::kEager;
  if (host_ && is_eager) return host_->post_eager(notice, payload, bytes);
  if (host_) return host_->post(notice);
  if (is_eager) return wire_->notify_eagerly(member_, head, {static_cast<const std::byte*>(payload), bytes});
  wire_->notify(member_, head, {});
}

const Notice* TransferPair::next() {
  if (host_) return host_->next();
  const std::span<const std::byte> message = wire_->noticed(member_);
  if (message.empty()) return nullptr;
  next_ = {};
  std::memcpy(&next_, message.data(), std::min(message.size(), sizeof next_));
  // A message with fewer bytes than it announces matches no receive.
  if (next_.kind == Notice::kEager && message.size() != sizeof next_ + next_.envelope().bytes()) next_.dtype = fcclNumTypes;
  return &next_;
}

const std::byte* TransferPair::payload_of_next() const {
  return host_ ? host_->payload_of_next(is_beside(*host_->next())) : wire_->noticed(member_).data() + sizeof(Notice);
}

TransferPair::Kept TransferPair::keep_next() const {
  Kept kept;
  if (host_) {
    copy_bytes(kept.beside.data(), host_->payload_of_next(true), kept.beside.size());
  } else {
    const std::span<const std::byte> message = wire_->noticed(member_);
    kept.bytes.assign(message.begin() + std::min(message.size(), sizeof(Notice)), message.end());
  }
  return kept;
}

const std::byte* TransferPair::payload_of(const Notice& notice, const Kept& kept) const {
  if (!host_) return kept.bytes.data();
  return is_beside(notice) ? kept.beside.data() : host_->payload_in_slot(notice);
}

bool TransferPair::put(const void* bytes, size_t size) {
  if (host_) {
    if (!host_->can_put()) return false;
    host_->put(bytes, size);
    return true;
  }
  if (!wire_->can_send(member_, size)) return false;
  std::byte* stage = wire_->take_stage();
  if (stage == nullptr) return false;
  copy_bytes(stage, bytes, size);
  wire_->send(member_, size);
  return true;
}

void TransferPair::drain(size_t size) {
  if (host_) return host_->drain(size);
  wire_->receive(member_, size);
  wire_->consume(member_);
}

}  // namespace fccl::core
