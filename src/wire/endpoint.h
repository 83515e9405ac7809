// Endpoint: a process's end of the network: its transport, and the one place where rails are polled and posted to.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/result.h"
#include "metrics/process_page.h"
#include "system/clock.h"
#include "wire/port.h"
#include "wire/progress_thread.h"
#include "wire/transport.h"

namespace fccl {

// Shared by the lanes of a process, and outlives them. What comes from strangers is dropped and counted, and changes nothing.
// Any thread may call. Inside one thread at a time has the turn: on the hot path whoever finds it taken goes on, since the
// other one does the work. The failure of an operation is of its lane and peer; the failure of a rail is of all lanes. The
// destructor waits for no peer; what was posted may be lost, see settle.
class Endpoint {
 public:
  explicit Endpoint(std::unique_ptr<Transport> transport);
  ~Endpoint();
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  // Polls all rails once, brings what they found to the lanes, and posts what the lanes have queued.
  void progress();
  // How often progress has had the turn, and how often it found anything; for the thread that looks whether others poll.
  uint64_t polls() const { return polls_.load(std::memory_order_relaxed); }
  uint64_t finds() const { return finds_.load(std::memory_order_relaxed); }

  // Until everything that was posted has ended; false if that takes longer. What has ended may still be on its way, and stay
  // there once nobody polls: who needs to know that peers have it must hear so from them before the endpoint goes.
  bool settle(Deadline deadline);
  // The same, and until peers have taken all messages of the lanes that are open, or have failed. Who leaves for good waits for
  // it before it closes its lanes: TCP drops what is on its way from a process that has gone.
  bool await_taken(Deadline deadline);

  // What lanes need.
  const TransportLimits& limits() const { return limits_; }
  std::vector<std::byte> address(int rail);
  // A new port with registered memory. From now on the endpoint polls by itself if nobody else does.
  Result<Port*> open(const PortShape& shape);
  // Never waits for a peer: memory that the network may still use stays until it no longer does, or until the transport goes.
  void close(Port* port);
  RemoteMemory landing_of(const Port& port, int rail);
  // The peer of a rail behind an address; the same for all lanes.
  Result<PeerId> connect(int rail, std::span<const std::byte> address);

 private:
  // One operation that the transport has.
  struct Flight {
    Port* port = nullptr;
    uint64_t note = 0;
    int rail = 0;
  };
  class Turn;

  const char* progress_in_turn();
  void poll(int rail);
  void route(const Completion& completion);
  void drop(const char* observed);
  std::pair<Port*, int> find_channel(uint32_t channel) const;
  void on_message(std::span<const std::byte> bytes);
  void land(uint64_t tag, bool well);
  void post(int rail);
  // False once the rail is full.
  bool post_of(Port& port, int rail);
  void show_posted(int rail, std::span<const Operation> posted, size_t offered);
  void fail_all(const Error& error);
  template <class Condition>
  bool progress_until(Deadline deadline, Condition holds_of);
  // Gives back what closed ports no longer need.
  void reap();

  std::unique_ptr<Transport> transport_;
  metrics::Page& page_;
  TransportLimits limits_;
  int budget_;  // of operations per rail
  std::atomic<bool> taken_{false};
  std::atomic<uint64_t> polls_{0};
  std::atomic<uint64_t> finds_{0};
  // With the turn only.
  std::vector<std::unique_ptr<Port>> ports_;  // by channel
  uint32_t next_channel_ = 0;
  std::map<std::pair<int, std::vector<std::byte>>, PeerId> peers_;
  std::vector<Flight> flights_;
  std::vector<uint32_t> free_flights_;
  std::vector<int> room_;  // by rail
  size_t first_served_ = 0;
  uint64_t strangers_ = 0;
  const char* first_stranger_ = nullptr;  // what was known of it, until that is told
  bool broken_ = false;
  ProgressThread thread_;
};

}  // namespace fccl
