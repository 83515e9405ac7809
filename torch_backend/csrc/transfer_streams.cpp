// Keeps idle streams for the next transfers.
#include "transfer_streams.h"

#include <algorithm>

namespace fccl::torch {

fcclResult_t TransferStreams::take(fcclStream_t* stream) {
  const std::lock_guard lock(mutex_);
  if (!idle_.empty()) {
    *stream = idle_.back();
    idle_.pop_back();
    return fcclSuccess;
  }
  const fcclResult_t made = fcclStreamCreate(stream);
  if (made == fcclSuccess) streams_.push_back(*stream);
  return made;
}

void TransferStreams::give_back(fcclStream_t stream) {
  const std::lock_guard lock(mutex_);
  idle_.push_back(stream);
}

bool TransferStreams::has_outstanding() {
  const std::lock_guard lock(mutex_);
  return std::any_of(streams_.begin(), streams_.end(),
                     [](fcclStream_t stream) { return fcclStreamQuery(stream) == fcclInProgress; });
}

void TransferStreams::end() {
  std::unique_lock lock(mutex_);
  idle_.clear();
  std::vector<fcclStream_t> streams;
  streams.swap(streams_);
  // A thread that finishes on one of them gives it back, which needs the lock.
  lock.unlock();
  // A failure on a stream has already reached its work.
  for (fcclStream_t stream : streams) (void)fcclStreamDestroy(stream);
  lock.lock();
  idle_.clear();
}

}  // namespace fccl::torch
