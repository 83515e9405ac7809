// Communicator: one rank's end of a group of ranks, and the way of every collective through it.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/call.h"
#include "base/result.h"
#include "base/transfer.h"
#include "communicator/staged_call.h"
#include "creation/create_options.h"
#include "system/wait_limit.h"

namespace fccl {

class Device;
class DeviceCalls;
class Invitation;
class IssuedGroup;
class IssuedTransfers;
class Statistics;
class Stream;
struct GroupedTransfer;
struct InitCost;
struct Parts;
struct UniqueId;

// Made by all ranks together (create, split, grow). One thread at a time issues calls; revoke, async_error and last_error are
// for any thread at any time. Finalize, abort and the destructor, too, are for any thread while another one is inside a call:
// they wait until that is out. After a failure every call returns the first failure; leaving and destroying still work. In a
// fork of the process that made it every call is refused, and only the destructor is of use.
class Communicator {
 public:
  static Result<std::unique_ptr<Communicator>> create(const UniqueId& id, int rank, int ranks, const CreateOptions& options,
                                                      const CancelCheck& cancel_check = {});
  // Collective: this rank's part of the group of its color, nullptr for a color below zero. Of this and of shrink and grow: a
  // `cancel_check` is asked while they wait, and where that fails a call of this communicator, or a split, it is this one's
  // failure, too.
  Result<std::unique_ptr<Communicator>> split(int color, int key, const CreateOptions& options,
                                              const CancelCheck& cancel_check = {});
  // Collective over the ranks that `excluded` does not name: their new communicator, in the order of their ranks.
  // Healthy, and waits until what is outstanding is done; or ends that first, as abort does, of a communicator in any state.
  enum class ShrinkAs { healthy, ended };
  Result<std::unique_ptr<Communicator>> shrink(const std::vector<int>& excluded, ShrinkAs as, const CreateOptions& options,
                                               const CancelCheck& cancel_check = {});
  // A unique id by which new ranks come to this one's grow. There is one at a time, until a grow by it or the end of this.
  Result<UniqueId> invite();
  // Collective over the ranks of this, and new ones that create by the same id: their communicator of `ranks` ranks, in which
  // those of this keep their numbers. `id`: null where another rank knows it, or has made it by invite.
  Result<std::unique_ptr<Communicator>> grow(int ranks, std::optional<UniqueId> id, const CreateOptions& options,
                                             const CancelCheck& cancel_check = {});
  // Who has died without leaving, in ascending order. Of other hosts: as far as their leaders have told.
  std::vector<int> dead_ranks() const;
  // Waits for this rank's outstanding operations, and tells the peers that it has left. Nobody may be about to enter a call.
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  // Runs a call on host memory whose arguments have been checked: on a stream, or here and now.
  Result<void> run(const Call& call, Stream* stream);
  // The same for one end of a transfer. Its peer need be in no other call.
  Result<void> transfer(const TransferEnd& transfer, Stream* stream);
  // Both on the memory of device(), which there must be, behind what is on a stream of it.
  Result<void> run_on_device(const Call& call, const OnDevice& on_device);
  Result<void> transfer_on_device(const TransferEnd& transfer, const OnDevice& on_device);
  // ---- Of those that go through host memory as a whole, issued by a group
  // What may refuse.
  Result<void> check_on_device(const CallOrTransfer& operation, const OnDevice& on_device);
  // Takes the host memory; nothing is issued yet.
  Result<std::unique_ptr<StagedCall>> stage(const CallOrTransfer& operation, const OnDevice& on_device);
  // Its input is on the host then, from where issue() takes it; whatever becomes of that, take_out follows.
  Result<void> bring_in(const StagedCall& call);
  // `has_result`: the group has ended well. If not, only what is of a communicator that has not failed is copied back.
  Result<void> take_out(const StagedCall& call, bool has_result);
  // ----
  // Gives a call, or an end of a transfer, its place in the order of its kind; whoever has the group runs it.
  Result<void> issue(const Call& call, IssuedGroup& group);
  Result<void> issue(const TransferEnd& transfer, IssuedGroup& group);
  // Issues all of a group, whose transfers on host memory are of this communicator and of no stream, and waits for them.
  Result<void> transfer_together(std::span<const GroupedTransfer> transfers);
  // Whether calls are taken.
  Result<void> check_usable() const;
  // Seconds that one may take, from assumed figures: for who asks before anything has run.
  double estimate(const Call& call) const;
  double estimate(const TransferEnd& transfer) const;
  // Waits until every issued operation is done; no call may follow.
  Result<void> finalize();
  // Fails every rank's outstanding and later operations.
  Result<void> revoke();
  // Revokes, and returns when this rank's operations are out.
  void abort();
  // Whether this is the process that made it.
  Result<void> check_own() const;
  // Looks for dead peers, too.
  std::optional<Error> async_error();
  const char* last_error();

  // The factor of a pre-multiplied sum: itself, or where it lies on the device.
  struct Factor {
    fcclDataType_t dtype;
    Scalar scalar;
    const void* on_device = nullptr;
  };
  Result<fcclRedOp_t> create_operator(const Factor& factor);
  Result<void> destroy_operator(fcclRedOp_t op);
  // The factor behind an operator handle made for `dtype`.
  Result<Factor> factor_of(fcclRedOp_t op, fcclDataType_t dtype) const;

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  fcclHosts_t hosts() const;
  void set_timeout(std::chrono::milliseconds timeout);
  const CreateOptions& options() const { return options_; }
  // Null for one of CPU memory.
  Device* device() const { return options_.device.get(); }
  // Whether calls can use what a pointer points to, on a communicator of CUDA memory.
  Result<void> check_place(const char* name, const void* pointer) const;
  const Statistics& statistics() const;
  const InitCost& init_cost() const;

 private:
  Communicator(const CreateOptions& options, std::unique_ptr<Parts> parts);
  static Result<std::unique_ptr<Communicator>> of_parts(const CreateOptions& options, std::unique_ptr<Parts> parts,
                                                        const CancelCheck& cancel_check = {});
  Result<Stream*> queue_for(Stream* stream);
  CancelCheck ending_this(const CancelCheck& cancel_check, const std::string& during);
  Result<void> run_unless_cancelled(const Call& call, const CancelCheck& cancel_check);
  Result<size_t> find_factor(fcclRedOp_t op) const;
  bool is_idle() const;
  Result<void> prepare_shrink(ShrinkAs as, const CancelCheck& cancel_check);

  CreateOptions options_;
  std::unique_ptr<Parts> parts_;
  std::unique_ptr<DeviceCalls> device_calls_;  // null for one of CPU memory
  std::unique_ptr<IssuedTransfers> together_;
  int rank_;
  int ranks_;
  std::atomic<bool> finalized_{false};
  std::atomic<bool> in_call_{false};  // written by the one thread that issues calls
  std::atomic<int> finalizing_{0};    // threads inside finalize
  std::vector<std::optional<Factor>> factors_;
  std::vector<uint64_t> shrinks_seen_;      // of each rank, the last one that this rank has heard of
  std::unique_ptr<Invitation> invitation_;  // null: none is open
  std::unique_ptr<Stream> blocking_;        // takes blocking calls that find their lane at work
};

}  // namespace fccl
