// Host streams of sends and receives, one for each that is outstanding: none may wait for another.
#pragma once

#include <mutex>
#include <vector>

#include "fccl/fccl.h"

namespace fccl {

// Owns the streams; shared by a group's calls and by whoever finishes one of them. Any thread may call. A stream on which
// something has failed remembers it, so it is not taken again.
class TransferStreams {
 public:
  // An idle stream, in `stream`.
  fcclResult_t take(fcclStream_t* stream);
  // When all that is on it is done, but for whoever says so.
  void give_back(fcclStream_t stream);
  // Whether something on them has not ended.
  bool has_outstanding();
  // Waits until all are empty, and ends them.
  void end();

 private:
  std::mutex mutex_;
  std::vector<fcclStream_t> streams_;
  std::vector<fcclStream_t> idle_;
};

}  // namespace fccl
