// StreamItem: what a host stream runs in its turn, such as an issued call or a host function.
#pragma once

#include <chrono>

#include "base/result.h"
#include "waiting/advance.h"

namespace fccl::core {

// Its stream owns it. One thread at a time calls it, the worker or a thread that waits for the stream, until it is done or
// fails; no other item of the stream is advanced before that.
class StreamItem {
 public:
  StreamItem() = default;
  virtual ~StreamItem() = default;
  StreamItem(const StreamItem&) = delete;
  StreamItem& operator=(const StreamItem&) = delete;

  // Advances as far as one step goes without waiting.
  virtual Result<Advance> advance() = 0;
  // Returns how long its runner should yield between steps that get nowhere, before it sleeps between them.
  virtual std::chrono::microseconds yielding() const { return std::chrono::microseconds::max(); }
  // True if it takes no longer than waking another thread, once its peers have come.
  virtual bool is_short() const { return false; }
  // True if polling again and again keeps no peer from the processor.
  virtual bool may_spin() const { return false; }
};

}  // namespace fccl::core
