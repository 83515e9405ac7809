// FrameMemory: the memory in which a phase keeps its frame.
#pragma once

#include <cstddef>

#include "base/check.h"

namespace fccl::core {

// Memory for the frame of a running phase, so that starting a phase allocates nothing. A lane owns it and runs one phase at a
// time.
class FrameMemory {
 public:
  void* take(size_t bytes) {
    check(!taken_ && bytes <= sizeof bytes_, "a lane runs one phase at a time and its frame fits");
    taken_ = true;
    return bytes_;
  }
  static void give_back(void* frame) { static_cast<FrameMemory*>(frame)->taken_ = false; }

 private:
  alignas(64) std::byte bytes_[2048];  // first, so that the address of a frame is the address of its memory
  bool taken_ = false;
};

}  // namespace fccl::core
