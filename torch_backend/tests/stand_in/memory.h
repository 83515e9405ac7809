// Memory of the tests' device: an allocator that hands memory out again as soon as CUDA's could.
#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/Stream.h>

#include <cstdint>

namespace stand_in {

// The allocator serves the current stream: a freed block is the next one of its size and stream, whatever still runs. One that
// another stream was recorded on is never handed out again.
c10::Allocator& allocator();
void record_on_stream(const c10::DataPtr& pointer, const c10::Stream& stream);
// How many blocks have been handed out a second time.
int64_t reused_blocks();

// On the current stream, and back only when it is done if one of the two is the host's.
void copy_bytes(void* to, const void* from, size_t bytes, bool touches_host);
// Rows of `bytes`, one every pitch, on the device.
struct Rows {
  void* address;
  size_t pitch;
};
void copy_rows(Rows to, Rows from, size_t bytes, size_t rows);

}  // namespace stand_in
