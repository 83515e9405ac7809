// Calls a group's backend by one operator, without torch's dispatch of collectives.
#pragma once

#include <ATen/ATen.h>

#include <string>

namespace fccl::torch {

// Reduces `tensor` in place over the group of that name, as torch.distributed.all_reduce does with async_op=False, and with the
// same failures. `op`: one of sum, avg, product, min, max, band, bor and bxor.
void all_reduce_in_place(at::Tensor tensor, const std::string& op, const std::string& group);

}  // namespace fccl::torch
