// Copying between buffers.
#pragma once

#include <cstddef>
#include <cstring>

namespace fccl {

// Zero bytes may come with null pointers. Not for overlapping buffers, save that target == source copies nothing.
inline void copy_bytes(void* target, const void* source, size_t bytes) {
  if (bytes != 0 && target != source) std::memcpy(target, source, bytes);
}

}  // namespace fccl
