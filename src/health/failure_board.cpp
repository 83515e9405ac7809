// Brings all ranks to the same first failure.
#include "health/failure_board.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "metrics/process_page.h"
#include "os/log.h"
#include "segment/rank_state.h"

namespace fccl::core {

std::optional<Error> FailureBoard::first() const {
  const uint32_t reporter = segment_.failure().first.load(std::memory_order_acquire);
  if (reporter == 0 || std::cmp_greater(reporter, segment_.shape().ranks)) return std::nullopt;
  const Cause& cause = segment_.state(static_cast<int>(reporter - 1)).cause;
  const std::string_view text(cause.text.data(), strnlen(cause.text.data(), cause.text.size()));
  // A peer may have written anything, so its code is checked.
  const MessageCode code = MessageCode::of_peer(cause.code).value_or(fcclInternalError);
  if (is_to_count_.exchange(false, std::memory_order_relaxed)) metrics::count_error(code, with_code(text, code));
  return Error{code, std::string(text)};
}

Error FailureBoard::raise(Error error) {
  if (offer(error)) {
    wake_leader();
    // The log comes last, since it may block if it is not read.
    log(LogLevel::info, with_code(error.message, error.code));
  }
  return first().value_or(std::move(error));
}

// A failure heard from other hosts came by the leader, so it is not told again.
void FailureBoard::hear_of(const Error& error) {
  if (offer(error)) log(LogLevel::info, with_code(error.message, error.code));
}

// Returns true if `error` has become the first failure.
bool FailureBoard::offer(const Error& error) {
  const std::lock_guard lock(mutex_);
  if (first()) return false;
  Cause& cause = segment_.state(local_).cause;
  cause.code = error.code.number();
  std::memcpy(cause.text.data(), error.message.data(), std::min(error.message.size(), cause.text.size() - 1));
  uint32_t none = 0;
  return segment_.failure().first.compare_exchange_strong(none, static_cast<uint32_t>(local_) + 1, std::memory_order_acq_rel);
}

void FailureBoard::wake_leader() const {
  const uint64_t once = 1;
  if (wake_) (void)!::write(wake_.get(), &once, sizeof once);
}

const char* FailureBoard::text() {
  const std::lock_guard lock(mutex_);
  if (!text_)
    if (auto failed = first()) text_ = with_code(failed->message, failed->code);
  return text_ ? text_->c_str() : "";
}

}  // namespace fccl::core
