// Translates torch's tensors and operators for the library: checks, data types, blocks, reductions.
#pragma once

#include <ATen/ATen.h>

#include <array>
#include <cstddef>
#include <functional>
#include <optional>
#include <torch/csrc/distributed/c10d/Types.hpp>
#include <vector>

#include "fccl/fccl.h"
#include "packing.h"

namespace fccl::torch {

// Describes a tensor's elements as the library counts them. A type that the library does not know moves as bytes.
struct Elements {
  fcclDataType_t type;
  size_t count;
};

// A number in the type of the elements it multiplies.
struct Factor {
  alignas(double) std::array<unsigned char, sizeof(double)> bytes;
};

// An operator of torch as the library takes it. One of the factors is set for a pre-multiplied sum, whose operator is made per
// call.
struct Reduction {
  fcclRedOp_t op;
  std::optional<Factor> factor = std::nullopt;
  at::Tensor device_factor = {};  // in the type of the elements; kept until the call is done
};

// Refuses, with `operation` in the text, tensors that the library cannot read or write: memory other than the CPU's and CUDA's,
// sparse tensors, and views whose values differ from the bytes in memory.
void check_tensor(const at::Tensor& tensor, const char* operation);
// Returns the one tensor of a list; torch's lists have one entry per device, and a rank has one device.
const at::Tensor& only(const std::vector<at::Tensor>& tensors, const char* operation);
// Returns the one list of `size` tensors, each of `like`'s type and number of elements.
const std::vector<at::Tensor>& only_list(const std::vector<std::vector<at::Tensor>>& lists, const at::Tensor& like, int size,
                                         const char* operation);
// Returns the one list of `size` tensors of `own`'s type. Their numbers of elements may differ, but this rank's must be
// `own`'s.
const std::vector<at::Tensor>& only_parts(const std::vector<std::vector<at::Tensor>>& lists, const at::Tensor& own, int rank,
                                          int size, const char* operation);
// Refuses a `whole` that is not `size` times `part`, or has another type.
void check_whole(const at::Tensor& whole, const at::Tensor& part, int size, const char* operation);
// Refuses likewise for sums; 16-bit and 8-bit floats may have a float32 result.
void check_summands(const at::Tensor& whole, const at::Tensor& part, int size, const char* operation);
// Refuses tensors that are not one per rank, each of `like`'s type.
void check_parts(const std::vector<at::Tensor>& tensors, const at::Tensor& like, int size, const char* operation);

Elements elements_of(const at::Tensor& tensor);
// Returns the number of elements of each tensor.
std::vector<size_t> counts_of(const std::vector<at::Tensor>& tensors);
// Returns the number of elements in each rank's rows, as torch splits a tensor: no splits mean equal ones. Refuses rows that
// would belong to no rank, or to two ranks.
std::vector<size_t> counts_of_splits(const at::Tensor& tensor, const std::vector<int64_t>& splits, int size,
                                     const char* operation);
bool are_equal(const std::vector<size_t>& counts);
// Like elements_of, but refuses types that the library cannot reduce by `op`. Complex numbers are summed by their parts.
Elements operands_of(const at::Tensor& tensor, const c10d::ReduceOp& op, const char* operation);
// Returns the operator for elements of `type`, or refuses it if the library would: for bool, bitwise and and or become minimum
// and maximum. `operand` is a tensor of the call.
Reduction reduction_of(const c10d::ReduceOp& op, fcclDataType_t type, const at::Tensor& operand, const char* operation);
// Calls `issue` with the library's operator for `reduction`. It does not throw.
fcclResult_t with_operator(const Reduction& reduction, fcclDataType_t type, fcclComm_t comm,
                           const std::function<fcclResult_t(fcclRedOp_t)>& issue);

// Memory that holds tensors one after another, each with its elements in the order of their indices.
struct Block {
  char* data;
  size_t bytes;
};

// Returns the memory of the tensors if they lie so; otherwise nothing.
std::optional<Block> as_one_block(const std::vector<at::Tensor>& tensors);
// Makes a buffer for `tensors` in order, on their device: of bytes on the CPU, of their type on a device.
at::Tensor staging_for(const std::vector<at::Tensor>& tensors);
// Make the copies between tensors and staging on the CPU.
std::vector<Packing> packings_of(const std::vector<at::Tensor>& tensors, char* staging);
bool overlap(const Block& one, const Block& other);

}  // namespace fccl::torch
