// Group: the calls that a thread makes between fcclGroupStart and fcclGroupEnd, issued together at the end.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/result.h"
#include "device_calls/on_device.h"

namespace fccl::core {

class Communicator;
class IssuedGroup;
class StagedCall;
class Stream;

// A send or a receive of a group, on host memory. `stream`: null if the thread waits for it.
struct GroupedTransfer {
  TransferEnd end;
  Communicator* communicator;
  Stream* stream;
};

// Belongs to one thread, which alone uses it, and never waits before the outermost end. Communicators and streams are the
// user's and live until then. The next group begins empty, whatever becomes of this one.
class Group {
 public:
  static Group& of_thread();
  // True if a group is open: every collective asks this.
  static bool is_open() { return depth > 0; }

  // Groups within a group are part of it.
  static void start() { ++depth; }
  void add(Communicator& communicator, const Call& call, Stream* stream);
  void add(Communicator& communicator, const TransferEnd& transfer, Stream* stream) {
    contents_.transfers.push_back({transfer, &communicator, stream});
  }
  // Adds an operation on the memory of the communicator's device.
  void add(Communicator& communicator, const CallOrTransfer& operation, const OnDevice& on_device);
  // Adds the making of a communicator, which needs other ranks that may be this thread's, too: it runs on a thread of its own
  // at the end, before the calls.
  void add(std::function<Result<void>()> creation) { contents_.creations.push_back(std::move(creation)); }
  // A call was refused: the group will issue nothing, and end with the first such error.
  void refuse(const Error& error) {
    if (!refused_) refused_ = error;
  }

  // Ends the group. The outermost end issues all before it waits for any, and returns once the calls without a stream have
  // ended, with the first failure.
  Result<void> end();
  // Runs a group of one operation on the memory of the communicator's device, while no group is open.
  static Result<void> run_alone(Communicator& communicator, const CallOrTransfer& operation, const OnDevice& on_device) {
    return issue({.on_device = {{&communicator, operation, on_device}}});
  }
  // Ends the group without issuing anything: returns how many seconds the calls may take, counting communicators as running
  // side by side.
  Result<double> simulate_end();

 private:
  struct GroupedCall {
    Communicator* communicator;
    Call call;
    Stream* stream;
  };
  struct GroupedOnDevice {
    Communicator* communicator;
    CallOrTransfer operation;
    OnDevice on_device;
  };
  struct Contents {
    std::vector<GroupedTransfer> transfers{};
    std::vector<GroupedCall> calls{};
    std::vector<GroupedOnDevice> on_device{};
    std::vector<std::unique_ptr<const UnevenBlocks>> blocks{};  // copies, since the caller's blocks live only until the call
                                                                // returns
    std::vector<std::function<Result<void>()>> creations{};

    void keep_blocks(Call& call);
    // Empties it, but keeps its room for the next group.
    void clear();
    // Returns null unless all are transfers of one communicator that the thread waits for.
    Communicator* only_transfers_of() const;
  };
  struct Staged {
    Communicator* communicator;
    std::unique_ptr<StagedCall> call;
    bool is_in = false, is_issued = false;
  };
  // The operations of one group, by stream; the thread that issues runs those without a stream.
  using ByStream = std::map<Stream*, std::unique_ptr<IssuedGroup>>;
  // Returns true if it was the outermost group.
  Result<bool> close();
  static Result<void> check_may_wait();
  static Result<void> check(const Contents& contents);
  static Result<std::vector<Staged>> stage(const Contents& contents);
  static Result<void> issue(const Contents& contents);

  static constinit thread_local int depth __attribute__((tls_model("initial-exec")));
  Contents contents_;
  std::optional<Error> refused_;
};

// Runs all tasks at the same time, the last one here and each other one on a thread of its own, and returns the first error. A
// task that gets no thread is not run, and the others then end by their own deadlines.
Result<void> run_side_by_side(const std::vector<std::function<Result<void>()>>& tasks);

}  // namespace fccl::core
