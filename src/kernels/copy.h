// Copying between buffers.
#pragma once

#include <cstddef>
#include <cstring>

namespace fccl {

// Zero bytes may come with null pointers. Not for overlapping buffers, save that target == source copies nothing.
inline void copy_bytes(void* target, const void* source, size_t bytes) {
  if (bytes != 0 && target != source) std::memcpy(target, source, bytes);
}

using CopyBytes = void (*)(void* target, const void* source, size_t bytes);

// The same past the caches, so that a target larger than they are is not read before it is written and pushes nothing out.
void stream_bytes(void* target, const void* source, size_t bytes);
// Results from this size on had better be streamed, if their call does not read them again.
inline constexpr size_t kStreamedBytes = size_t{2} << 20;

}  // namespace fccl
