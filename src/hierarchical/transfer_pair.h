// TransferPair: one rank's side of the transfers between it and one other rank, by the segment or over the network.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "host/host_pair.h"
#include "wire/lane.h"

namespace fccl::core {

// A rank's transfer lane owns it; the one thread that has the lane's turn uses it. For a rank of this host it is a HostPair. A
// rank of another host has no slots here, so the pair keeps payloads that come before their receive.
class TransferPair {
 public:
  // A payload that came before its receive.
  struct Kept {
    decltype(NoticeLine::beside) beside{};
    std::vector<std::byte> bytes;
  };

  TransferPair(std::shared_ptr<Segment> segment, int rank, int peer) : host_(HostPair(std::move(segment), rank, peer)) {}
  // The caller keeps `wire` alive longer than this.
  TransferPair(WireLane& wire, int member, size_t eager_bytes);

  size_t eager_bytes() const { return eager_bytes_; }
  bool can_post() { return host_ ? host_->can_post() : wire_->can_notify(member_); }
  bool can_post_eager() { return host_ ? host_->can_post_eager() : wire_->can_notify_eagerly(member_); }
  void post(const Notice& notice) { post_eager(notice, nullptr, 0); }
  void post_eager(const Notice& notice, const void* payload, size_t bytes);
  void post_offer(const Notice& notice, const void* source) {
    host_ ? host_->post_offer(notice, source) : post_eager(notice, nullptr, 0);
  }

  // Returns the peer's oldest notice that has not been taken, or null, and its payload.
  const Notice* next();
  const std::byte* payload_of_next() const;
  Kept keep_next() const;
  void take() { host_ ? host_->take() : wire_->take_notice(member_); }
  // Returns the payload of a notice that has been taken.
  const std::byte* payload_of(const Notice& notice, const Kept& kept) const;
  void release(const Notice& notice) { host_ ? host_->release(notice) : wire_->release(member_); }

  size_t slice_bytes() const { return host_ ? host_->slice_bytes() : wire_->slot_bytes(); }
  // Puts a slice if there is room now.
  bool put(const void* bytes, size_t size);
  bool has_slice(size_t size) const { return host_ ? host_->has_slice() : wire_->has_arrived(member_, size); }
  const std::byte* slice(size_t size) const { return host_ ? host_->slice(size) : wire_->landing(member_); }
  void drain(size_t size);
  bool is_on_this_host() const { return host_.has_value(); }
  // Reads from a rank of this host, as HostPair does.
  bool read(const PeerMemory& memory, void* target, const void* source, size_t bytes) const {
    return host_->read(memory, target, source, bytes);
  }

 private:
  std::optional<HostPair> host_;
  WireLane* wire_ = nullptr;
  int member_ = 0;
  size_t eager_bytes_ = host_ ? host_->eager_bytes() : 0;
  Notice next_;
};

}  // namespace fccl::core
