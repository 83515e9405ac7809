// Runs torch's collectives with parts of unequal sizes: all_to_all, and lists of unequal tensors.
#include <numeric>
#include <utility>

#include "backend.h"
#include "staging.h"

namespace fccl::torch {
namespace {

using c10d::OpType;
using Counts = std::vector<size_t>;

// Returns the bytes of the first `rank` tensors.
size_t bytes_before(const Backend::Tensors& tensors, int rank) {
  return std::accumulate(tensors.begin(), tensors.begin() + rank, size_t{0},
                         [](size_t sum, const at::Tensor& tensor) { return sum + tensor.nbytes(); });
}

// Adds an exchange of the operation's inputs and outputs. A rank with equal parts cannot know whether those of others are
// equal, so all ranks use the call for unequal ones.
void add_exchange(Operation& operation, const Counts& sends, const Counts& receives) {
  const fcclDataType_t type = elements_of(operation.inputs[0]).type;
  const Block send = readable_block(operation, operation.inputs).block;
  const Target target = writable_apart(operation, operation.outputs, send);
  add_call(operation, target, [=, send = send.data, receive = target.data](fcclComm_t comm, fcclStream_t stream) {
    return fcclAlltoAllV(send, sends.data(), nullptr, receive, receives.data(), nullptr, type, comm, stream);
  });
}

}  // namespace

void Backend::add_allgather_v(Operation& operation, const Tensors& outputs, const at::Tensor& input) const {
  const Elements own = elements_of(input);
  const Block send = readable_block(operation, {input}).block;
  const Target target = writable_whole(operation, outputs, send, bytes_before(outputs, getRank()));
  add_call(operation, target,
           [=, counts = counts_of(outputs), send = send.data, receive = target.data](fcclComm_t comm, fcclStream_t stream) {
             return fcclAllGatherV(send, own.count, receive, counts.data(), nullptr, own.type, comm, stream);
           });
}

void Backend::add_reduce_scatter_v(Operation& operation, const at::Tensor& output, const Tensors& inputs,
                                   const c10d::ReduceOp& op) const {
  const fcclDataType_t type = operands_of(output, op, operation.title).type;
  const Reduction reduction = reduction_of(op, type, output, operation.title);
  if (reduction.device_factor.defined()) operation.staging.push_back(reduction.device_factor);
  Counts counts;
  counts.reserve(inputs.size());
  for (const at::Tensor& input : inputs) counts.push_back(operands_of(input, op, operation.title).count);
  const Block send = readable_block(operation, inputs).block;
  const Target target = writable_part(operation, output, send, bytes_before(inputs, getRank()));
  add_call(operation, target, [=, send = send.data, receive = target.data](fcclComm_t comm, fcclStream_t stream) {
    return with_operator(reduction, type, comm, [&](fcclRedOp_t red_op) {
      return fcclReduceScatterV(send, receive, counts.data(), type, red_op, comm, stream);
    });
  });
}

Backend::WorkPtr Backend::alltoall(Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions& options) {
  Operation operation{"fccl:all_to_all", OpType::ALLTOALL, options.asyncOp, options.timeout, inputs, outputs};
  TORCH_CHECK_VALUE(!inputs.empty(), operation.title, ": expected one tensor per rank (", getSize(), "), got none");
  check_parts(inputs, inputs[0], getSize(), operation.title);
  check_parts(outputs, inputs[0], getSize(), operation.title);
  add_exchange(operation, counts_of(inputs), counts_of(outputs));
  return run(std::move(operation));
}

Backend::WorkPtr Backend::alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<int64_t>& output_sizes,
                                        std::vector<int64_t>& input_sizes, const c10d::AllToAllOptions& options) {
  Operation operation{"fccl:all_to_all_single", OpType::ALLTOALL_BASE, options.asyncOp, options.timeout, {input}, {output}};
  const Counts sends = counts_of_splits(input, input_sizes, getSize(), operation.title);
  const Counts receives = counts_of_splits(output, output_sizes, getSize(), operation.title);
  check_parts(operation.outputs, input, 1, operation.title);
  add_exchange(operation, sends, receives);
  return run(std::move(operation));
}

}  // namespace fccl::torch
