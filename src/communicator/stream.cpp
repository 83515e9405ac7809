// A stream's end of the worker.
#include "communicator/stream.h"

#include "communicator/issued_call.h"
#include "communicator/issued_group.h"
#include "communicator/worker.h"

namespace fccl {

Stream::Stream() : worker_(&Worker::of_process()) {}

Result<std::unique_ptr<Stream>> Stream::make() {
  std::unique_ptr<Stream> made(new Stream);
  FCCL_TRY(made->worker_->add(*made));
  return made;
}

Stream::~Stream() {
  if (!check_usable()) return;
  (void)synchronize();
  worker_->remove(*this);
}

Result<void> Stream::check_usable() const {
  if (worker_ == &Worker::of_process()) return {};
  return fail(fcclInvalidUsage, "this process is a fork of the one that made the stream: make a new one after fork()");
}

void Stream::enqueue(Item item) { worker_->enqueue(*this, std::move(item)); }

Result<bool> Stream::query() const {
  FCCL_TRY(check_usable());
  const std::lock_guard lock(worker_->mutex());
  if (!result_) return fail(result_.error());
  return items_.empty();
}

Result<void> Stream::synchronize() {
  FCCL_TRY(check_usable());
  worker_->wait_until([this] { return items_.empty(); });
  const std::lock_guard lock(worker_->mutex());
  return result_;
}

}  // namespace fccl
