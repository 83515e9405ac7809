// Host streams for sends and receives, one for each that is outstanding: no transfer may wait for another.
#pragma once

#include <mutex>
#include <vector>

#include "fccl/fccl.h"

namespace fccl::torch {

// Owns the streams; a group's calls share it with the threads that finish them. Any thread may call. A stream remembers a
// failure, so a failed one is not taken again.
class TransferStreams {
 public:
  // Sets *stream to an idle stream.
  fcclResult_t take(fcclStream_t* stream);
  // Returns a stream whose work is done, except for the step that calls this.
  void give_back(fcclStream_t stream);
  // True if an operation on one of them has not ended.
  bool has_outstanding();
  // Waits until all are empty, and destroys them.
  void end();

 private:
  std::mutex mutex_;
  std::vector<fcclStream_t> streams_;
  std::vector<fcclStream_t> idle_;
};

}  // namespace fccl::torch
