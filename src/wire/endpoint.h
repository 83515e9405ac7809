// Endpoint: a process's end of the network. It owns the transport, and is the only place where rails are polled and posted to.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/result.h"
#include "os/clock.h"
#include "wire/flights.h"
#include "wire/port_memory.h"
#include "wire/progress_thread.h"
#include "wire/transport.h"

namespace fccl::core {

namespace metrics {
struct Page;
}
struct PortShape;

// Says who polls an endpoint: its own thread beside those that call, or the callers alone, whose clock decides when it moves.
enum class PolledBy : uint8_t { own_thread_too, callers_alone };

// Shared by the lanes of a process, and outlives them. Messages of strangers are dropped and counted, and change nothing. Any
// thread may call. One thread at a time has the turn inside: on the hot path a thread that finds the turn taken goes on, since
// the other thread does the work. The failure of an operation affects its lane and peer; the failure of a rail affects all
// lanes. The destructor waits for no peer; posted operations may be lost, see settle.
class Endpoint {
 public:
  explicit Endpoint(std::unique_ptr<Transport> transport, PolledBy polled_by = PolledBy::own_thread_too);
  ~Endpoint();
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  // Polls all rails once, hands what they found to the lanes, and posts what the lanes have queued.
  void progress();
  // Return how often progress has had the turn, and how often it found something; the progress thread sees by them whether
  // others poll.
  uint64_t polls() const { return polls_.load(std::memory_order_relaxed); }
  uint64_t finds() const { return finds_.load(std::memory_order_relaxed); }

  // Waits until everything posted has ended; returns false if that takes longer. Data of an operation that has ended may still
  // be in flight, and stay so once nobody polls: a caller that needs its peers to have the data must hear so from them before
  // the endpoint ends.
  bool settle(Deadline deadline);
  // Waits also until peers have taken all messages of the open lanes, or have failed. A rank that leaves for good calls it
  // before it closes its lanes: TCP drops data in flight when its process has gone.
  bool await_taken(Deadline deadline);

  // The interface for lanes.
  const TransportLimits& limits() const { return transport_->limits(); }
  std::vector<std::byte> address(int rail);
  // Opens a new port with registered memory. From now on a thread of the endpoint polls while no other does, unless it is
  // polled by its callers alone.
  Result<Port*> open(const PortShape& shape);
  // Never waits for a peer: memory that the network may still use stays until the transport ends, but takes no pages by then.
  void close(Port* port);
  RemoteMemory landing_of(const Port& port, int rail);
  // For asides, which no lane's thread posts: in_turn runs `work` in the turn, for which it waits. Only there, and where an
  // aside is heard, post_at_once may be called; it returns false if the rail has no room now.
  void in_turn(const std::function<void()>& work);
  bool post_at_once(Port& port, Operation operation);
  // Returns the peer of a rail behind an address; all lanes share it.
  Result<PeerId> connect(int rail, std::span<const std::byte> address);

 private:
  class Turn;

  const char* progress_in_turn();
  void poll(int rail);
  void route(const Completion& completion);
  void drop(const char* observed);
  std::pair<Port*, int> find_channel(uint32_t channel) const;
  void on_message(std::span<const std::byte> bytes);
  void land(uint64_t tag, bool well);
  void post(int rail);
  // Returns false once the rail is full.
  bool post_of(Port& port, int rail);
  void show_posted(int rail, std::span<const Operation> posted, size_t offered);
  void fail_all(const Error& error);
  template <class Condition>
  bool progress_until(Deadline deadline, Condition holds_of);
  // Ends closed ports whose operations have ended, and retires their memory.
  void reap();

  std::unique_ptr<Transport> transport_;
  metrics::Page& page_;
  std::atomic<bool> taken_{false};
  std::atomic<uint64_t> polls_{0};
  std::atomic<uint64_t> finds_{0};
  // Guarded by the turn.
  std::vector<std::unique_ptr<Port>> ports_;  // by channel
  std::vector<PortMemory> retired_;           // peers' writes may still go there
  uint32_t next_channel_ = 0;
  std::map<std::pair<int, std::vector<std::byte>>, PeerId> peers_;
  Flights flights_;
  size_t first_served_ = 0;
  uint64_t strangers_ = 0;
  const char* first_stranger_ = nullptr;  // description of the first stranger, until it is logged
  bool broken_ = false;
  std::optional<ProgressThread> thread_;  // none if the callers alone poll
};

}  // namespace fccl::core
