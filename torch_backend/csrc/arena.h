// Memory of CPU tensors that the other ranks of the host map, so that peers copy its data only once.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>

namespace fccl::torch {

// Makes a tensor of one dimension whose bytes are not set. The memory is freed with the last tensor that holds it, even after
// the end of every group. If the library cannot give memory, torch's own is used, with one warning.
at::Tensor arena_tensor(int64_t count, const at::TensorOptions& options);

// Makes torch take CPU tensors of 16 KiB or more from the arena from now on, in this process and until its end. Existing
// tensors stay where they are.
void allocate_cpu_tensors_in_arena();

}  // namespace fccl::torch
