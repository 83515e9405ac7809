// Puts steps on streams, and ends their works.
#include "cpu_calls.h"

#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "completions.h"
#include "errors.h"

namespace fccl::torch {

// An operation on the stream. It keeps the tensors alive until the worker is done with them.
struct CpuCalls::Pending {
  // Deletes an operation only when its stream is empty, since a caller may leave, even by an exception, while steps on the
  // stream use the tensors.
  struct EndAfterStream {
    void operator()(Pending* pending) const {
      (void)fcclStreamSynchronize(pending->stream);
      delete pending;
    }
  };

  fcclStream_t stream;
  std::shared_ptr<TransferStreams> owner;  // owns the stream; null if it is the collectives' stream
  c10::intrusive_ptr<Work> work;
  Operation operation;

  // Collects operations that end on this thread while it waits for one of them, or issues it; null if no caller collects.
  static thread_local std::vector<std::shared_ptr<Pending>>* ended_here;
};

thread_local std::vector<std::shared_ptr<CpuCalls::Pending>>* CpuCalls::Pending::ended_here = nullptr;

namespace {

// Returns why an operation before this point of the stream failed; null if none has. A failed operation fails all that follow.
std::exception_ptr failure_on(fcclStream_t stream, const Work& work) {
  const fcclResult_t result = fcclStreamQuery(stream);
  if (result == fcclSuccess || result == fcclInProgress) return nullptr;
  return failure_of(result, work.attempt(), fcclGetLastError(nullptr));
}

}  // namespace

void CpuCalls::connect() {
  const std::lock_guard turn(communicator_->turn());
  (void)communicator_->open("fccl:connect");
}

void CpuCalls::renew(fcclComm_t comm, Place place) {
  // A failed stream keeps its failure, so the new communicator gets new streams.
  transfers_->end();
  transfers_ = std::make_shared<TransferStreams>();
  end_stream();
  copies_on_stream_ = false;
  const fcclComm_t before = communicator_->replace(comm, std::move(place));
  if (before != nullptr) (void)fcclCommDestroy(before);
}

c10::intrusive_ptr<c10d::Work> CpuCalls::run(Operation operation, std::chrono::milliseconds timeout, const Describe& describe) {
  const std::lock_guard turn(communicator_->turn());
  const fcclComm_t comm = communicator_->open(operation.title);
  communicator_->set_deadline(timeout, operation.title);
  auto work =
      c10::make_intrusive<Work>(communicator_->membership().rank, describe(operation), operation.inputs, operation.outputs);
  if (operation.async) {
    enqueue(comm, std::move(operation), work);
  } else {
    run_now(comm, operation, *work);
  }
  return work;
}

void CpuCalls::run_now(fcclComm_t comm, const Operation& operation, Work& work) {
  // The library serves its calls in turn, but does not know of copies: copies of earlier calls come first, and a copy must see
  // the results of earlier calls. A caller that has passed a barrier expects its earlier operations to be done.
  const bool is_barrier = operation.type == c10d::OpType::BARRIER;
  if (copies_on_stream_ || ((operation.packs || is_barrier) && stream_ != nullptr)) {
    check(fcclStreamSynchronize(stream_.get()), work.attempt());
    copies_on_stream_ = false;
  }
  for (const Step& step : operation.steps) {
    if (const fcclResult_t result = step(comm, nullptr); result != fcclSuccess) check(result, work.attempt());
  }
  work.complete(nullptr);
  work.complete_future();
}

fcclResult_t CpuCalls::stream_of_collectives(fcclStream_t* stream) {
  if (stream_ == nullptr) {
    if (const fcclResult_t made = fcclStreamCreate(stream); made != fcclSuccess) return made;
    stream_ = std::shared_ptr<void>(*stream, [](void* ended) { (void)fcclStreamDestroy(ended); });
  }
  *stream = stream_.get();
  return fcclSuccess;
}

// A thread that still waits for a work of the stream holds the last reference to it.
void CpuCalls::end_stream() {
  // A failure on the stream has already reached its work.
  if (stream_ != nullptr) (void)fcclStreamSynchronize(stream_.get());
  stream_ = nullptr;
}

void CpuCalls::enqueue(fcclComm_t comm, Operation operation, const c10::intrusive_ptr<Work>& work) {
  const auto owner = operation.source ? transfers_ : nullptr;
  fcclStream_t stream = nullptr;
  check(owner ? owner->take(&stream) : stream_of_collectives(&stream), work->attempt());
  copies_on_stream_ = copies_on_stream_ || (operation.copies && !owner);
  std::unique_ptr<Pending, Pending::EndAfterStream> pending(new Pending{stream, owner, work, std::move(operation)});
  fcclResult_t issued = fcclSuccess;
  std::string cause;
  for (const Step& step : pending->operation.steps) {
    issued = step(comm, stream);
    if (issued == fcclSuccess) continue;
    cause = fcclGetLastError(nullptr);
    break;
  }
  if (issued == fcclSuccess && fcclStreamQuery(stream) == fcclSuccess) return look_after([&] { on_done(pending.release()); });
  const fcclResult_t launched = fcclLaunchHostFunc(stream, on_done, pending.get());
  if (launched == fcclSuccess) {
    (void)pending.release();
    unsigned long long position = 0;
    if (!owner && fcclStreamGetPosition(stream, &position) == fcclSuccess)
      work->serve_by([stream = stream_, position](auto timeout) { serve(stream.get(), position, timeout); });
  }
  if (issued != fcclSuccess) check(issued, work->attempt(), cause.c_str());
  if (launched != fcclSuccess) check(launched, work->attempt());
}

void CpuCalls::on_done(void* user_data) {
  std::shared_ptr<Pending> pending(static_cast<Pending*>(user_data));
  const std::exception_ptr failure = failure_on(pending->stream, *pending->work);
  if (pending->owner && !failure) pending->owner->give_back(pending->stream);
  pending->work->complete(failure);
  if (Pending::ended_here != nullptr && pending->work->complete_without_future())
    return Pending::ended_here->push_back(std::move(pending));
  // Another thread gets the operation, since its last holder releases the tensors, which may take Python's lock.
  Completions::of_process().post([pending = std::move(pending)] { pending->work->complete_future(); });
}

// Operations that end during `function` are released here, without another thread; those with callbacks are not.
template <class Function>
void CpuCalls::look_after(Function function) {
  std::vector<std::shared_ptr<Pending>> ended;
  struct Here {
    explicit Here(std::vector<std::shared_ptr<Pending>>* list) : before(std::exchange(Pending::ended_here, list)) {}
    ~Here() { Pending::ended_here = before; }
    std::vector<std::shared_ptr<Pending>>* before;
  };
  const Here here(&ended);
  function();
}

// Runs on a thread that waits for the operation at this position of the stream.
void CpuCalls::serve(fcclStream_t stream, unsigned long long position, std::chrono::milliseconds timeout) {
  // A failure has already reached its work.
  look_after([&] { (void)fcclStreamSynchronizeTo(stream, position, timeout <= kNoTimeout ? -1 : clamped(timeout)); });
}

fcclResult_t CpuCalls::drain() {
  const std::lock_guard turn(communicator_->turn());
  return stream_ == nullptr ? fcclSuccess : fcclStreamSynchronize(stream_.get());
}

bool CpuCalls::has_outstanding() {
  const std::lock_guard turn(communicator_->turn());
  return (stream_ != nullptr && fcclStreamQuery(stream_.get()) == fcclInProgress) || transfers_->has_outstanding();
}

void CpuCalls::abort() {
  communicator_->revoke();
  if (communicator_->is_joining()) return;
  // The turn makes sure that every thread inside a call, or about to enter one, has returned before the handle ends.
  const std::lock_guard turn(communicator_->turn());
  communicator_->end("fccl:abort");
}

void CpuCalls::shut_down() {
  const std::lock_guard turn(communicator_->turn());
  transfers_->end();
  end_stream();
  communicator_->end("fccl:shutdown");
}

}  // namespace fccl::torch
