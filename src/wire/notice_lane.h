// NoticeLane: one rank's notices to and from the ranks of other hosts, along with a wire lane for the messages they announce.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"

namespace fccl::core {

class Endpoint;
struct NoticesTaken;
struct PortPeer;
struct PortShape;
class WireLane;
struct WireLaneShape;

// Notices are small messages that the peer takes in the order in which they were sent. An eager notice has a payload that its
// receiver did not ask for. A rank's transfer lane owns it; the one thread that has that lane's turn uses it. No function
// waits. After a failure of a peer only that peer's notices stop.
class NoticeLane {
 public:
  // The number of eager notices of a peer that may be unreleased.
  static constexpr uint32_t kEagers = 8;

  // The shape says how many notices there may be.
  static Result<std::unique_ptr<NoticeLane>> open(Endpoint& endpoint, const WireLaneShape& shape);
  ~NoticeLane();
  NoticeLane(const NoticeLane&) = delete;
  NoticeLane& operator=(const NoticeLane&) = delete;

  // The lane that connects the ranks, and moves messages; no call runs on it. Its credits tell which notices are taken, too.
  WireLane& wire() { return *wire_; }
  const WireLane& wire() const { return *wire_; }

  bool can_notify(int member) const;
  bool can_notify_eagerly(int member) const;
  void notify(int member, std::span<const std::byte> head, std::span<const std::byte> payload);
  void notify_eagerly(int member, std::span<const std::byte> head, std::span<const std::byte> payload);
  // Returns the next notice of a peer, head and payload, until it is taken; empty if it has not come. The taker of an eager
  // notice releases it, once.
  std::span<const std::byte> noticed(int member) const;
  void take(int member);
  void release(int member);

 private:
  explicit NoticeLane(std::unique_ptr<WireLane> wire);
  const PortShape& shape() const;
  PortPeer& counts_of(int member) const;
  NoticesTaken heard_of(int member) const;
  int free_notice() const;
  void set_taken(int member, const NoticesTaken& taken);

  std::unique_ptr<WireLane> wire_;
  std::vector<uint32_t> eagers_;          // by the place of a peer: eager notices sent
  int notice_ = 0;                        // posted last
  std::vector<uint64_t> notices_posted_;  // by the memory of the notice
};

}  // namespace fccl::core
