// Staging buffers: where the tensors of a call lie one behind the other, if they do not themselves.
#pragma once

#include <ATen/ATen.h>

#include <optional>
#include <vector>

#include "operation.h"
#include "tensors.h"

namespace fccl {

// Tensors, and the buffer that has them one behind the other before or after a call. Of one device.
struct Staging {
  std::vector<at::Tensor> tensors;
  at::Tensor buffer;

  Block block() const { return {static_cast<char*>(buffer.data_ptr()), buffer.nbytes()}; }
};

// What a call reads, and where that was copied from.
struct Source {
  Block block;
  std::optional<Staging> staging = std::nullopt;
};

// Where a call writes, and where that is to be copied to when it is done.
struct Target {
  char* data;
  std::optional<Staging> staging = std::nullopt;
};

// A staging buffer for `tensors`, kept alive by the operation.
Staging add_staging(Operation& operation, const std::vector<at::Tensor>& tensors);
// Add the copies, in their turn: on CPU memory at once or by the worker when the stream comes to them, on a device by torch on
// the current stream. After a failure on a host stream nothing is copied: what a call that failed has left is nobody's result.
void add_packing(Operation& operation, const Staging& staging);
void add_unpacking(Operation& operation, const Staging& staging);
// Adds a call of the library, and the copies that follow it.
void add_call(Operation& operation, Target target, Step call);

// `tensors` as one block to read: where they lie, or a staging buffer that is filled from them.
Source readable_block(Operation& operation, const std::vector<at::Tensor>& tensors);
// `tensors` as one block to write.
Target writable_block(Operation& operation, const std::vector<at::Tensor>& tensors);
// The same while `input` is read, which may overlap it only as the library's in-place form does: `own_offset` bytes behind its
// begin.
Target writable_whole(Operation& operation, const std::vector<at::Tensor>& tensors, const Block& input, size_t own_offset);
// `output` to write while `whole` is read, with the same exception.
Target writable_part(Operation& operation, const at::Tensor& output, const Block& whole, size_t own_offset);
// The same while `input` is read, which may not overlap it.
Target writable_apart(Operation& operation, const std::vector<at::Tensor>& tensors, const Block& input);
// What was read as `source`, to write in place.
Target writable_in_place(const Source& source);

}  // namespace fccl
