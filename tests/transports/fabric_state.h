// FabricState: what the endpoints of a Fabric share: memory that peers may reach, and the inboxes of all rails.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "transports/fabric.h"

namespace fccl::core::simulated {

// Memory that an endpoint has registered. Its addresses in RemoteMemory are not pointers, so that nobody uses them as such.
struct Region {
  // Held while bytes of it are moved for a peer, so that a release waits for those.
  std::mutex mutex;
  std::span<std::byte> bytes;
  uint64_t number = 0;
  uint64_t endpoint = 0;
  PeersMay peers_may = PeersMay::nothing;
  bool released = false;
  // Operations of the owner that use it; for the owner's thread alone.
  int in_use = 0;

  uint64_t address() const { return number << 40 | 0x5000; }
  uint64_t key(int rail) const { return number << 8 | static_cast<uint64_t>(rail); }
  static uint64_t number_of(uint64_t key) { return key >> 8; }
  static uint64_t rail_of(uint64_t key) { return key & 0xff; }
};

// Which of a write's two completions was polled first; only for the counts.
struct Outcome {
  std::atomic<bool> ended{false};
  std::atomic<bool> arrived{false};
};

class Inbox;

// An `arrived` or a message on its way into a poll of its target.
struct Notice {
  Completion::Kind kind = Completion::Kind::arrived;
  uint32_t immediate = 0;
  std::vector<std::byte> bytes;
  // The inbox of the rail that sent it; only to be compared.
  const Inbox* sender = nullptr;
  // Which link it came by, and its place there.
  uint64_t link = 0;
  uint64_t place = 0;
  std::shared_ptr<Outcome> outcome;
};

// The notices that a rail gets from others.
class Inbox {
 public:
  // False if it is a message for which there is no room.
  bool put(Notice& notice);
  std::vector<Notice> take();
  void make_room(int messages);

  // How often its rail has been polled. Relaxed: it orders nothing.
  std::atomic<uint64_t> polls{0};
  std::atomic<Loss> loss{Loss::none};

 private:
  std::mutex mutex_;
  std::vector<Notice> notices_;
  int room_ = 0;
};

class FabricState {
 public:
  explicit FabricState(const FabricOptions& options) : options(options) {}

  // The number of a new endpoint, which has these inboxes.
  uint64_t add_endpoint(std::vector<std::shared_ptr<Inbox>> inboxes);
  // Null if the endpoint or its rail is gone.
  std::shared_ptr<Inbox> inbox(uint64_t endpoint, uint64_t rail);
  std::shared_ptr<Region> add_region(uint64_t endpoint, std::span<std::byte> bytes, PeersMay peers_may);
  static void release(Region& region);
  // Null if it never was.
  std::shared_ptr<Region> region(uint64_t number);
  uint64_t next_link() { return links_++; }

  // Aborts, unless this fabric makes errors of misuse.
  tl::unexpected<Error> misuse(std::string sentence) const;

  const FabricOptions options;
  FaultCounts counts;

 private:
  std::mutex mutex_;
  std::vector<std::vector<std::shared_ptr<Inbox>>> endpoints_;
  std::vector<std::shared_ptr<Region>> regions_;
  std::atomic<uint64_t> links_{0};
};

}  // namespace fccl::core::simulated
