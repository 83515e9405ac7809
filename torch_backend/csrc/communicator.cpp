// Makes a group's communicator at its first use, and keeps it until the group ends.
#include "communicator.h"

#include <c10/util/Exception.h>

#include <utility>

#include "errors.h"

namespace fccl::torch {
namespace {

std::string text_of(const Membership& membership) {
  return c10::str("group '", membership.name, "' on rank ", membership.rank, " of ", membership.size);
}

}  // namespace

Communicator::Communicator(Membership membership, c10::intrusive_ptr<c10d::Store> store, std::string key, fcclMemoryKind_t kind)
    : membership_(std::move(membership)),
      group_text_(text_of(membership_)),
      store_(std::move(store)),
      key_(std::move(key)),
      kind_(kind),
      deadline_(membership_.timeout) {}

std::string Communicator::attempt_of(const char* title) const { return c10::str(title, " of ", group_text_); }

bool Communicator::is_made() {
  const std::lock_guard lock(life_);
  return state_ == State::made;
}

fcclComm_t Communicator::open(const char* title) {
  {
    const std::lock_guard lock(life_);
    if (aborted_) check(fcclAborted, attempt_of(title), "the group was aborted");
    if (state_ == State::shut_down) check(fcclInvalidUsage, attempt_of(title), "the group was shut down");
    if (state_ == State::failed) std::rethrow_exception(refusal_);
    if (state_ == State::made) return comm_;
    state_ = State::joining;
  }
  const fcclComm_t made = make();
  std::unique_lock lock(life_);
  if (!aborted_) {
    state_ = State::made;
    return comm_ = made;
  }
  state_ = State::shut_down;
  lock.unlock();
  (void)fcclCommDestroy(made);
  check(fcclAborted, attempt_of(title), "the group was aborted");
  return nullptr;
}

fcclComm_t Communicator::make() {
  try {
    return join(*store_, key_, membership_, kind_, &identity_);
  } catch (...) {
    // A second attempt of one rank would only find in the store what the first attempt left there.
    const std::lock_guard lock(life_);
    state_ = State::failed;
    refusal_ = std::current_exception();
    throw;
  }
}

void Communicator::adopt(fcclComm_t comm, std::string identity) {
  const std::lock_guard lock(life_);
  state_ = State::made;
  comm_ = comm;
  identity_ = std::move(identity);
}

fcclComm_t Communicator::replace(fcclComm_t comm, Place place) {
  const std::lock_guard lock(life_);
  membership_ = std::move(place.membership);
  group_text_ = text_of(membership_);
  key_ = std::move(place.key);
  identity_ = std::move(place.identity);
  deadline_ = membership_.timeout;
  state_ = comm == nullptr ? State::unmade : State::made;
  aborted_ = false;
  refusal_ = nullptr;
  failure_ = fcclSuccess;
  cause_.clear();
  return std::exchange(comm_, comm);
}

void Communicator::set_deadline(std::chrono::milliseconds timeout, const char* title) {
  if (timeout == deadline_) return;
  check(fcclCommSetTimeout(comm_, clamped(timeout)), attempt_of(title));
  deadline_ = timeout;
}

std::exception_ptr Communicator::failure(const std::string& attempt) {
  const std::lock_guard lock(life_);
  if (aborted_) return failure_of(fcclAborted, attempt, "the group was aborted");
  if (comm_ == nullptr) return failure_ == fcclSuccess ? nullptr : failure_of(failure_, attempt, cause_.c_str());
  fcclResult_t found = fcclSuccess;
  const fcclResult_t asked = fcclCommGetAsyncError(comm_, &found);
  if (asked != fcclSuccess) return failure_of(asked, attempt, fcclGetLastError(nullptr));
  if (found == fcclSuccess || found == fcclInProgress) return nullptr;
  return failure_of(found, attempt, fcclGetLastError(comm_));
}

c10d::ErrorType Communicator::error() {
  const std::lock_guard lock(life_);
  if (state_ == State::unmade || state_ == State::joining)
    return aborted_ ? c10d::ErrorType::COMM_ERROR : c10d::ErrorType::SUCCESS;
  fcclResult_t found = fcclSuccess;
  if (comm_ == nullptr || fcclCommGetAsyncError(comm_, &found) != fcclSuccess) return c10d::ErrorType::COMM_ERROR;
  switch (found) {
    case fcclSuccess:
    case fcclInProgress:
      return c10d::ErrorType::SUCCESS;
    case fcclTimeout:
      return c10d::ErrorType::TIMEOUT;
    case fcclRemoteError:
      return c10d::ErrorType::REMOTE_ERROR;
    default:
      return c10d::ErrorType::COMM_ERROR;
  }
}

void Communicator::revoke() {
  const std::lock_guard lock(life_);
  if (state_ == State::shut_down || aborted_) return;
  // A joining thread ends the communicator itself, once it has one.
  aborted_ = true;
  if (comm_ != nullptr) report(fcclCommRevoke(comm_, 0), "fccl:abort");
}

void Communicator::finish(const char* title) {
  std::unique_lock lock(life_);
  fcclResult_t found = fcclSuccess;
  const fcclComm_t comm = comm_;
  if (comm == nullptr || fcclCommGetAsyncError(comm, &found) != fcclSuccess || found != fcclSuccess) return;
  lock.unlock();
  report(fcclCommFinalize(comm), title);
}

bool Communicator::is_joining() {
  const std::lock_guard lock(life_);
  return state_ == State::joining;
}

void Communicator::end(const char* title) {
  std::unique_lock lock(life_);
  state_ = State::shut_down;
  const fcclComm_t comm = std::exchange(comm_, nullptr);
  if (comm == nullptr) return;
  fcclResult_t found = fcclSuccess;
  if (fcclCommGetAsyncError(comm, &found) == fcclSuccess && found != fcclSuccess && found != fcclInProgress) {
    failure_ = found;
    cause_ = fcclGetLastError(comm);
  }
  lock.unlock();
  report(fcclCommDestroy(comm), title);
}

void Communicator::report(fcclResult_t result, const char* title) const {
  if (result != fcclSuccess) {
    TORCH_WARN(attempt_of(title), ": ", fcclGetLastError(nullptr));
  }
}

}  // namespace fccl::torch
