// Starts the thread that makes the communicator, and stops it.
#include "communicator/pending_communicator.h"

#include <utility>

#include "communicator/communicator.h"
#include "os/thread.h"

namespace fccl::core {

Result<std::unique_ptr<PendingCommunicator>> PendingCommunicator::start(Make make, std::unique_ptr<Communicator>& into) {
  std::unique_ptr<PendingCommunicator> making(new PendingCommunicator());
  auto thread = start_thread({"fccl-creation", "makes a communicator"}, [self = making.get(), make = std::move(make), &into] {
    auto made = make([self]() -> Result<void> {
      if (!self->is_unwanted_.load(std::memory_order_relaxed)) return {};
      return fail(MessageKind::ended_in_init, "the communicator was ended while it was being made");
    });
    if (made) {
      into = std::move(*made);
    } else {
      self->error_ = std::move(made).error();
      self->failure_text_ = with_code(self->error_.message, self->error_.code);
    }
    self->state_.store(into ? fcclSuccess : fcclResult_t{self->error_.code}, std::memory_order_release);
  });
  if (!thread) return fail(std::move(thread).error());
  making->thread_ = std::move(*thread);
  return making;
}

PendingCommunicator::~PendingCommunicator() {
  if (is_own())
    end();
  else if (thread_.joinable())
    thread_.detach();
}

Result<void> PendingCommunicator::check() const {
  if (state() == fcclSuccess) return {};
  if (has_failed()) return fail(error_);
  if (!is_own())
    return fail(MessageKind::forked,
                "this process is a fork of the one that made the communicator: make a new one after fork()");
  return fail(fcclInvalidUsage,
              "the communicator is still being made (config.blocking = 0): ask fcclCommGetAsyncError until it does not say "
              "fcclInProgress any more");
}

const char* PendingCommunicator::failure_text() const { return has_failed() ? failure_text_.c_str() : ""; }

void PendingCommunicator::end() {
  is_unwanted_.store(true, std::memory_order_relaxed);
  if (is_own() && thread_.joinable()) thread_.join();
}

}  // namespace fccl::core
