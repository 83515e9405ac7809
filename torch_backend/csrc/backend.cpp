// The life of a process group of the backend "fccl" and the way of one operation through it.
#include "backend.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "completions.h"
#include "errors.h"

namespace fccl {

// An operation on the stream; it keeps the tensors alive until the worker is done with them.
struct Backend::Pending {
  // For whoever may leave, by an exception too, while steps are on the stream and use the tensors.
  struct EndAfterStream {
    void operator()(Pending* pending) const {
      (void)fcclStreamSynchronize(pending->stream);
      delete pending;
    }
  };

  fcclStream_t stream;
  c10::intrusive_ptr<Work> work;
  Operation operation;
};

namespace {

// Why an operation before this point of the stream failed; null if none has. What failed once fails all that follows.
std::exception_ptr failure_on(fcclStream_t stream, const Work& work) {
  const fcclResult_t result = fcclStreamQuery(stream);
  if (result == fcclSuccess || result == fcclInProgress) return nullptr;
  return failure_of(result, work.attempt(), fcclGetLastError(nullptr));
}

}  // namespace

Backend::Backend(fcclComm_t comm, const Membership& membership)
    : c10d::Backend(membership.rank, membership.size),
      name_(membership.name),
      group_text_(c10::str("group '", membership.name, "' on rank ", membership.rank, " of ", membership.size)),
      timeout_(membership.timeout),
      deadline_(membership.timeout),
      comm_(comm) {}

Backend::~Backend() { shutdown(); }

// A new object each time: torch writes the name of a group to be split off into it.
c10::intrusive_ptr<Backend::Options> Backend::getBackendOptions() {
  const std::lock_guard lock(calls_);
  auto options = c10::make_intrusive<Options>(kBackendName, timeout_);
  options->group_name = name_;
  return options;
}

void Backend::setTimeout(std::chrono::milliseconds timeout) {
  const std::lock_guard lock(calls_);
  timeout_ = timeout;
}

c10d::ErrorType Backend::getError() {
  const std::lock_guard lock(life_);
  fcclResult_t failure = fcclSuccess;
  if (comm_ == nullptr || fcclCommGetAsyncError(comm_, &failure) != fcclSuccess) return c10d::ErrorType::COMM_ERROR;
  switch (failure) {
    case fcclSuccess:
      return c10d::ErrorType::SUCCESS;
    case fcclTimeout:
      return c10d::ErrorType::TIMEOUT;
    case fcclRemoteError:
      return c10d::ErrorType::REMOTE_ERROR;
    default:
      return c10d::ErrorType::COMM_ERROR;
  }
}

c10::intrusive_ptr<c10d::Backend> Backend::split(const c10::intrusive_ptr<c10d::Store>& /*store*/,
                                                 const std::vector<int>& ranks, const c10::intrusive_ptr<Options>& options) {
  const auto place = std::find(ranks.begin(), ranks.end(), getRank());
  const bool member = place != ranks.end();
  const int key = static_cast<int>(place - ranks.begin());
  // Groups do not overlap, so the lowest rank names one.
  const int color = member ? *std::min_element(ranks.begin(), ranks.end()) : FCCL_SPLIT_NOCOLOR;
  const Membership membership{key, static_cast<int>(ranks.size()), options->timeout, options->group_name};
  fcclConfig_t config = config_of(membership.timeout, membership.name);
  fcclComm_t child = nullptr;
  const std::lock_guard lock(calls_);
  check(fcclCommSplit(open_comm("fccl:split"), color, key, &child, &config), attempt_of("fccl:split"));
  if (!member) return nullptr;
  int joined = 0;
  check(fcclCommCount(child, &joined), attempt_of("fccl:split"));
  if (joined != membership.size) {
    (void)fcclCommDestroy(child);
    check(fcclInvalidUsage, attempt_of("fccl:split"),
          c10::str("this rank's list has ", membership.size, " ranks, but ", joined,
                   " joined: all ranks must give the same lists")
              .c_str());
  }
  return c10::make_intrusive<Backend>(child, membership);
}

void Backend::abort() {
  std::unique_lock life(life_);
  if (comm_ == nullptr) return;
  aborted_ = true;
  report(fcclCommRevoke(comm_, 0), "fccl:abort");
  life.unlock();
  // Whoever was inside a call, or about to enter one, comes out before the handle goes.
  const std::lock_guard calls(calls_);
  life.lock();
  const fcclComm_t comm = std::exchange(comm_, nullptr);
  life.unlock();
  if (comm != nullptr) report(fcclCommDestroy(comm), "fccl:abort");
}

void Backend::shutdown() {
  const std::lock_guard lock(calls_);
  // A failure of what was on the stream has reached its work.
  if (stream_ != nullptr) (void)fcclStreamDestroy(std::exchange(stream_, nullptr));
  std::unique_lock life(life_);
  const fcclComm_t comm = std::exchange(comm_, nullptr);
  life.unlock();
  if (comm != nullptr) report(fcclCommDestroy(comm), "fccl:shutdown");
}

Backend::WorkPtr Backend::run(Operation operation) {
  const std::lock_guard lock(calls_);
  const fcclComm_t comm = open_comm(operation.title);
  set_deadline(comm, operation.timeout, operation.title);
  const c10::weak_intrusive_ptr<Backend> group(c10::intrusive_ptr<Backend>::reclaim_copy(this));
  const auto abort_group = [group] {
    if (const auto backend = group.lock()) backend->abort();
  };
  auto work = c10::make_intrusive<Work>(
      getRank(), Work::Description{operation.title, group_text_, operation.type, ++sequence_, abort_group}, operation.inputs,
      operation.outputs);
  if (operation.async) {
    enqueue(comm, std::move(operation), work);
  } else {
    run_now(comm, operation, *work);
  }
  return work;
}

void Backend::run_now(fcclComm_t comm, const Operation& operation, Work& work) {
  // The library serves its calls in turn, but knows of no copies: those of earlier calls come first, and one is to see what
  // earlier calls have left.
  if (copies_on_stream_ || (operation.packs && stream_ != nullptr)) {
    check(fcclStreamSynchronize(stream_), work.attempt());
    copies_on_stream_ = false;
  }
  for (const Step& step : operation.steps) {
    if (const fcclResult_t result = step(comm, nullptr); result != fcclSuccess) check(result, work.attempt());
  }
  work.complete(nullptr);
  work.complete_future();
}

void Backend::enqueue(fcclComm_t comm, Operation operation, const c10::intrusive_ptr<Work>& work) {
  if (stream_ == nullptr) check(fcclStreamCreate(&stream_), work->attempt());
  copies_on_stream_ = copies_on_stream_ || operation.copies;
  std::unique_ptr<Pending, Pending::EndAfterStream> pending(new Pending{stream_, work, std::move(operation)});
  fcclResult_t issued = fcclSuccess;
  std::string cause;
  for (const Step& step : pending->operation.steps) {
    issued = step(comm, stream_);
    if (issued == fcclSuccess) continue;
    cause = fcclGetLastError(nullptr);
    break;
  }
  const fcclResult_t launched = fcclLaunchHostFunc(stream_, on_done, pending.get());
  if (launched == fcclSuccess) (void)pending.release();
  if (issued != fcclSuccess) check(issued, work->attempt(), cause.c_str());
  if (launched != fcclSuccess) check(launched, work->attempt());
}

void Backend::on_done(void* user_data) {
  std::shared_ptr<Pending> pending(static_cast<Pending*>(user_data));
  const std::exception_ptr failure = failure_on(pending->stream, *pending->work);
  pending->work->complete(failure);
  // Given away, since the last holder releases the tensors, which may take Python's lock.
  Completions::of_process().post([pending = std::move(pending)] { pending->work->complete_future(); });
}

std::string Backend::attempt_of(const char* title) const { return c10::str(title, " of ", group_text_); }

fcclComm_t Backend::open_comm(const char* title) {
  const std::lock_guard lock(life_);
  if (comm_ == nullptr || aborted_) {
    check(aborted_ ? fcclAborted : fcclInvalidUsage, attempt_of(title),
          aborted_ ? "the group was aborted" : "the group was shut down");
  }
  return comm_;
}

void Backend::set_deadline(fcclComm_t comm, std::chrono::milliseconds timeout, const char* title) {
  const auto wanted = timeout > kNoTimeout ? timeout : timeout_;
  if (wanted == deadline_) return;
  check(fcclCommSetTimeout(comm, clamped(wanted)), attempt_of(title));
  deadline_ = wanted;
}

void Backend::report(fcclResult_t result, const char* title) const {
  if (result != fcclSuccess) {
    TORCH_WARN(attempt_of(title), ": ", fcclGetLastError(nullptr), " [", fcclGetErrorString(result), "]");
  }
}

}  // namespace fccl
