// Memory of CPU tensors that the other ranks of the host map, so that what they take of it is copied once.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>

namespace fccl {

// A tensor of one dimension whose bytes are not set. The memory goes back with the last tensor that holds it, also behind the
// end of every group. Where the library has none to give, torch's own is taken, and that is said once.
at::Tensor arena_tensor(int64_t count, const at::TensorOptions& options);

// From here on torch takes all memory of CPU tensors that is worth it from there, in this process and until its end. Tensors
// that there are stay where they are.
void allocate_cpu_tensors_in_arena();

}  // namespace fccl
