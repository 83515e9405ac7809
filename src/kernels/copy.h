// Copies bytes between buffers, through the caches or past them.
#pragma once

#include <cstddef>
#include <cstring>

namespace fccl::core {

// Copies between buffers that do not overlap; target == source copies nothing. The pointers may be null if `bytes` is 0.
inline void copy_bytes(void* target, const void* source, size_t bytes) {
  if (bytes != 0 && target != source) std::memcpy(target, source, bytes);
}

using CopyBytes = void (*)(void* target, const void* source, size_t bytes);

// Copies like copy_bytes, but past the caches. The processor then does not read a large target before writing it, and evicts
// nothing.
void stream_bytes(void* target, const void* source, size_t bytes);

}  // namespace fccl::core
