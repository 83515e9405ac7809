// Group: the calls that a thread makes between fcclGroupStart and fcclGroupEnd, issued together at the end.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/call.h"
#include "base/result.h"
#include "base/transfer.h"
#include "communicator/staged_call.h"

namespace fccl {

class Communicator;
class IssuedGroup;
class Stream;

// A send or a receive of a group, on host memory. `stream`: null where the thread waits for it.
struct GroupedTransfer {
  TransferEnd end;
  Communicator* communicator;
  Stream* stream;
};

// Of one thread, which alone uses it, and never waits before the outermost end. Communicators and streams are the user's and
// live until then. Whatever comes of it, the next group begins empty.
class Group {
 public:
  static Group& of_thread();
  // Whether one is open: what every collective asks.
  static bool is_open() { return depth > 0; }

  // Groups within a group are part of it.
  static void start() { ++depth; }
  void add(Communicator& communicator, const Call& call, Stream* stream);
  void add(Communicator& communicator, const TransferEnd& transfer, Stream* stream) {
    contents_.transfers.push_back({transfer, &communicator, stream});
  }
  // On the memory of the communicator's device.
  void add(Communicator& communicator, const CallOrTransfer& operation, const OnDevice& on_device);
  // What needs other ranks that may be this thread's, too: runs on a thread of its own at the end, before the calls.
  void add(std::function<Result<void>()> creation) { contents_.creations.push_back(std::move(creation)); }
  // A call was refused: the group will issue nothing, and end with the first such error.
  void refuse(const Error& error) {
    if (!refused_) refused_ = error;
  }

  // Of the outermost group issues all before it waits for any, and returns when those without a stream have ended, with the
  // first failure.
  Result<void> end();
  // A group of one operation on the memory of the communicator's device, while none is open.
  static Result<void> run_alone(Communicator& communicator, const CallOrTransfer& operation, const OnDevice& on_device) {
    return issue({.on_device = {{&communicator, operation, on_device}}});
  }
  // The same without issuing anything: how many seconds the calls may take, for those that differ in communicator side by side.
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
    std::vector<std::unique_ptr<const UnevenBlocks>> blocks{};  // of those calls: the caller's live until the call returns
    std::vector<std::function<Result<void>()>> creations{};

    void keep_blocks(Call& call);
    // The room stays for the next group.
    void clear();
    // Null unless all are transfers that the thread waits for, of one communicator.
    Communicator* only_transfers_of() const;
  };
  struct Staged {
    Communicator* communicator;
    std::unique_ptr<StagedCall> call;
    bool is_in = false, is_issued = false;
  };
  // Of one group: what is issued, told apart by stream; what has none is run by the thread that issues.
  using ByStream = std::map<Stream*, std::unique_ptr<IssuedGroup>>;
  // Whether it was the outermost one.
  Result<bool> close();
  static Result<void> check_may_wait();
  static Result<void> check(const Contents& contents);
  static Result<std::vector<Staged>> stage(const Contents& contents);
  static Result<void> issue(const Contents& contents);
  static Result<void> issue_apart(const Contents& contents);

  static constinit thread_local int depth __attribute__((tls_model("initial-exec")));
  Contents contents_;
  std::optional<Error> refused_;
};

// Runs all at the same time, the last one here and each other one on a thread of its own, and returns the first error. What
// finds no thread is not run, and then the others end by their own deadlines.
Result<void> run_side_by_side(const std::vector<std::function<Result<void>()>>& tasks);

}  // namespace fccl
