// Staging buffers: memory where the tensors of a call follow one another, if they do not by themselves.
#pragma once

#include <ATen/ATen.h>

#include <optional>
#include <vector>

#include "operation.h"
#include "tensors.h"

namespace fccl::torch {

// Tensors, and the buffer that holds them in order before or after a call. All are on one device.
struct Staging {
  std::vector<at::Tensor> tensors;
  at::Tensor buffer;

  Block block() const { return {static_cast<char*>(buffer.data_ptr()), buffer.nbytes()}; }
};

// A block that a call reads, and the staging that fills it.
struct Source {
  Block block;
  std::optional<Staging> staging = std::nullopt;
};

// The memory that a call writes, and the staging that empties it afterwards.
struct Target {
  char* data;
  std::optional<Staging> staging = std::nullopt;
};

// Makes a staging buffer for `tensors`, which the operation keeps alive.
Staging add_staging(Operation& operation, const std::vector<at::Tensor>& tensors);
// Add the copies in their turn: on CPU memory at once, or by the worker when the stream reaches them; on a device by torch on
// the current stream. After a failure on a host stream nothing is copied: a failed call has no valid result.
void add_packing(Operation& operation, const Staging& staging);
void add_unpacking(Operation& operation, const Staging& staging);
// Adds a call of the library, and the copies that follow it.
void add_call(Operation& operation, Target target, Step call);

// Returns `tensors` as one block to read: in place, or in a staging buffer that is filled from them.
Source readable_block(Operation& operation, const std::vector<at::Tensor>& tensors);
// Returns `tensors` as one block to write.
Target writable_block(Operation& operation, const std::vector<at::Tensor>& tensors);
// Does so while `input` is read, which may overlap the block only as in the library's in-place form: `own_offset` bytes after
// its begin.
Target writable_whole(Operation& operation, const std::vector<at::Tensor>& tensors, const Block& input, size_t own_offset);
// Returns `output` as memory to write while `whole` is read, with the same exception.
Target writable_part(Operation& operation, const at::Tensor& output, const Block& whole, size_t own_offset);
// Does so while `input` is read, which may not overlap it.
Target writable_apart(Operation& operation, const std::vector<at::Tensor>& tensors, const Block& input);
// Returns the block that was read as `source`, to be written in place.
Target writable_in_place(const Source& source);

}  // namespace fccl::torch
