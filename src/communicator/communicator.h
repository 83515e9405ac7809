// Communicator: one rank's end of a group of ranks; every collective goes through it.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "creation/create_options.h"
#include "device_calls/on_device.h"
#include "waiting/wait_limit.h"

namespace fccl::core {

class Derivation;
class Device;
class DeviceCalls;
class IssuedGroup;
class IssuedTransfers;
class Operators;
class StagedCall;
class Statistics;
class Stream;
struct GroupedTransfer;
struct InitCost;
struct CommunicatorState;
struct Mark;
struct UniqueId;

// All ranks make it together (create, split, grow). One thread at a time issues calls; any thread may call revoke, async_error
// and last_error at any time. Any thread may also finalize, abort or destroy it while another one is inside a call: they wait
// until that call has returned. After a failure every call returns the first failure; leaving and destroying still work. A fork
// of the process that made it may only destroy it; every call is refused.
class Communicator {
 public:
  static Result<std::unique_ptr<Communicator>> create(const UniqueId& id, int rank, int ranks, const CreateOptions& options,
                                                      const CancelCheck& cancel_check = {});
  // Wraps a state that a creation has filled; on GPU memory, it asks `cancel_check` while it waits for the peers.
  static Result<std::unique_ptr<Communicator>> of_state(const CreateOptions& options, std::unique_ptr<CommunicatorState> state,
                                                        const CancelCheck& cancel_check = {});
  // Makes other communicators from this one.
  Derivation& derivation() { return *derivation_; }
  // Lists the ranks that died without leaving, in ascending order. For other hosts: the deaths that their leaders have
  // reported.
  std::vector<int> dead_ranks() const;
  // Waits for this rank's outstanding operations, and tells the peers that it has left. No thread may be about to enter a call.
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  // Runs a call on host memory whose arguments have been checked: on a stream, or at once on this thread.
  Result<void> run(const Call& call, Stream* stream);
  // Runs one end of a transfer likewise. Its peer need not be in any other call.
  Result<void> transfer(const TransferEnd& transfer, Stream* stream);
  // Run a call or a transfer on the memory of device(), after the work that its stream already holds. There must be a device.
  Result<void> run_on_device(const Call& call, const OnDevice& on_device);
  Result<void> transfer_on_device(const TransferEnd& transfer, const OnDevice& on_device);
  // ---- Steps of a group's operation on GPU memory that runs as a whole in host memory.
  // Refuses the operation if any rule does.
  Result<void> check_on_device(const CallOrTransfer& operation, const OnDevice& on_device);
  // Allocates the host memory; nothing is issued yet.
  Result<std::unique_ptr<StagedCall>> stage(const CallOrTransfer& operation, const OnDevice& on_device);
  // Returns once the input is on the host, from where issue() takes it; take_out must follow, even after a failure.
  Result<void> bring_in(const StagedCall& call);
  // `has_result`: the group has succeeded. Otherwise results are copied back only if their communicator has not failed.
  Result<void> take_out(const StagedCall& call, bool has_result);
  // ---- Gives a call, or an end of a transfer, its place in the order of its kind; the caller that holds the group runs it.
  Result<void> issue(const Call& call, IssuedGroup& group);
  Result<void> issue(const TransferEnd& transfer, IssuedGroup& group);
  // Issues all transfers of a group and waits for them. All are on host memory, of this communicator and without a stream.
  Result<void> transfer_together(std::span<const GroupedTransfer> transfers);
  // Returns the user's stream, or without one the stream of this communicator's blocking calls.
  Result<Stream*> queue_for(Stream* stream);
  // Returns an error in a fork of the process that made it, and after finalize.
  Result<void> check_open() const;
  // Returns an error unless calls are taken.
  Result<void> check_usable() const;
  // Returns how many seconds the operation may take, from assumed speeds: callers ask before anything has run.
  double estimate(const Call& call) const;
  double estimate(const TransferEnd& transfer) const;
  // Waits until every issued operation is done; no call may follow.
  Result<void> finalize();
  // Fails every rank's outstanding and later operations.
  Result<void> revoke();
  // Revokes, and returns when this rank's operations are out.
  void abort();
  // Returns an error in a fork of the process that made it.
  Result<void> check_own() const;
  // Looks for dead peers, then returns the first failure.
  std::optional<Error> async_error();
  const char* last_error();

  // True if no operation of this rank is in progress.
  bool is_idle() const;
  Operators& operators() { return *operators_; }

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  fcclHosts_t hosts() const;
  // True if calls of the collective can go between all hosts of this communicator.
  bool carries(fcclColl_t collective) const;
  void set_timeout(std::chrono::milliseconds timeout);
  // Needs a device. Says how calls from now on end (OwnDevice::set_end).
  void set_end(Mark end);
  const CreateOptions& options() const { return options_; }
  // Null on CPU memory.
  Device* device() const { return options_.device.get(); }
  // Returns an error unless calls on CUDA memory can use the memory that `pointer` points to.
  Result<void> check_place(const char* name, const void* pointer) const;
  const Statistics& statistics() const;
  const InitCost& init_cost() const;

 private:
  Communicator(const CreateOptions& options, std::unique_ptr<CommunicatorState> state);

  CreateOptions options_;
  std::unique_ptr<CommunicatorState> state_;
  std::unique_ptr<DeviceCalls> device_calls_;  // null on CPU memory
  std::unique_ptr<IssuedTransfers> together_;
  int rank_;
  int ranks_;
  std::atomic<bool> finalized_{false};
  std::atomic<bool> in_call_{false};  // written by the one thread that issues calls
  std::atomic<int> finalizing_{0};    // threads inside finalize
  std::unique_ptr<Stream> blocking_;  // takes blocking calls that find their lane busy
  std::unique_ptr<Operators> operators_;
  std::unique_ptr<Derivation> derivation_;
};

}  // namespace fccl::core
