// Each collective of torch as an operation of the backend: its checks, its library calls, its staging.
#include <utility>

#include "backend.h"
#include "errors.h"
#include "staging.h"

namespace fccl {
namespace {

using c10d::OpType;

// Adds a call, and the copies that follow it.
void add_call(Operation& operation, Target target, Step call) {
  operation.steps.push_back(std::move(call));
  if (target.staging) add_unpacking(operation, *target.staging);
}

// `tensors` as one block to read: where they lie, or a staging buffer that is filled from them.
Source readable_block(Operation& operation, const Backend::Tensors& tensors) {
  if (const auto block = as_one_block(tensors)) return {*block};
  const Staging staging = add_staging(operation, tensors);
  add_packing(operation, staging);
  return {staging.block(), staging};
}

Target staged_target(Operation& operation, const Backend::Tensors& tensors) {
  const Staging staging = add_staging(operation, tensors);
  return {staging.block().data, staging};
}

// `tensors` as one block to write.
Target writable_block(Operation& operation, const Backend::Tensors& tensors) {
  if (const auto block = as_one_block(tensors)) return {block->data};
  return staged_target(operation, tensors);
}

// The same while `input` is read, which may overlap it only as the library's in-place form does: at this rank's place.
Target writable_whole(Operation& operation, const Backend::Tensors& tensors, const Block& input, int rank) {
  if (const auto block = as_one_block(tensors)) {
    const bool in_place = input.data == block->data + static_cast<size_t>(rank) * input.bytes;
    if (in_place || !overlap(input, *block)) return {block->data};
  }
  return staged_target(operation, tensors);
}

// `output` to write while the block of all ranks' parts is read, with the same exception.
Target writable_part(Operation& operation, const at::Tensor& output, const Block& whole, int rank) {
  if (const auto part = as_one_block({output})) {
    const bool in_place = part->data == whole.data + static_cast<size_t>(rank) * part->bytes;
    if (in_place || !overlap(*part, whole)) return {part->data};
  }
  return staged_target(operation, {output});
}

// The same while `input` is read, which may not overlap it.
Target writable_apart(Operation& operation, const Backend::Tensors& tensors, const Block& input) {
  if (const auto block = as_one_block(tensors))
    if (!overlap(input, *block)) return {block->data};
  return staged_target(operation, tensors);
}

// What was read as `source`, to write in place.
Target writable_in_place(const Source& source) { return {source.block.data, source.staging}; }

void check_pairs(const Backend::Tensors& outputs, const Backend::Tensors& inputs, const char* title) {
  TORCH_CHECK_VALUE(outputs.size() == inputs.size(), title, ": expected as many outputs as inputs, got ", outputs.size(),
                    " and ", inputs.size());
}

void check_root(int64_t root, int size, const char* title) {
  TORCH_CHECK_VALUE(root >= 0 && root < size, title, ": the root must be a rank of the group (0 to ", size - 1, "), got ",
                    root);
}

}  // namespace

void Backend::add_allreduce(Operation& operation, const at::Tensor& tensor, const c10d::ReduceOp& op) const {
  check_tensor(tensor, operation.title);
  const Elements elements = operands_of(tensor, op, operation.title);
  const Reduction reduction = reduction_of(op, elements.type, tensor, operation.title);
  if (reduction.device_factor.defined()) operation.staging.push_back(reduction.device_factor);
  const Source source = readable_block(operation, {tensor});
  add_call(operation, writable_in_place(source), [=, data = source.block.data](fcclComm_t comm, fcclStream_t stream) {
    return with_operator(reduction, elements.type, comm, [&](fcclRedOp_t red_op) {
      return fcclAllReduce(data, data, elements.count, elements.type, red_op, comm, stream);
    });
  });
}

void Backend::add_allgather(Operation& operation, const Tensors& outputs, const at::Tensor& input) const {
  const Elements part = elements_of(input);
  const Block send = readable_block(operation, {input}).block;
  const Target target = writable_whole(operation, outputs, send, getRank());
  add_call(operation, target, [=, send = send.data, receive = target.data](fcclComm_t comm, fcclStream_t stream) {
    return fcclAllGather(send, receive, part.count, part.type, comm, stream);
  });
}

void Backend::add_reduce_scatter(Operation& operation, const at::Tensor& output, const Tensors& inputs,
                                 const c10d::ReduceOp& op) const {
  const Elements part = operands_of(output, op, operation.title);
  const Reduction reduction = reduction_of(op, part.type, output, operation.title);
  if (reduction.device_factor.defined()) operation.staging.push_back(reduction.device_factor);
  const Block send = readable_block(operation, inputs).block;
  const Target target = writable_part(operation, output, send, getRank());
  add_call(operation, target, [=, send = send.data, receive = target.data](fcclComm_t comm, fcclStream_t stream) {
    return with_operator(reduction, part.type, comm, [&](fcclRedOp_t red_op) {
      return fcclReduceScatter(send, receive, part.count, part.type, red_op, comm, stream);
    });
  });
}

void Backend::add_alltoall(Operation& operation) const {
  const auto size = static_cast<size_t>(getSize());
  const Block send = readable_block(operation, operation.inputs).block;
  const Target target = writable_apart(operation, operation.outputs, send);
  const Elements whole = elements_of_all(operation.inputs);
  add_call(operation, target, [=, send = send.data, receive = target.data](fcclComm_t comm, fcclStream_t stream) {
    return fcclAlltoAll(send, receive, whole.count / size, whole.type, comm, stream);
  });
}

Backend::WorkPtr Backend::broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) {
  Operation operation{"fccl:broadcast", OpType::BROADCAST, options.asyncOp, options.timeout, tensors, tensors};
  const at::Tensor& tensor = only(tensors, operation.title);
  check_root(options.rootRank, getSize(), operation.title);
  const Elements elements = elements_of(tensor);
  const int root = static_cast<int>(options.rootRank);
  const Target target =
      getRank() == root ? Target{readable_block(operation, tensors).block.data} : writable_block(operation, tensors);
  add_call(operation, target, [=, data = target.data](fcclComm_t comm, fcclStream_t stream) {
    return fcclBroadcast(data, data, elements.count, elements.type, root, comm, stream);
  });
  return run(std::move(operation));
}

Backend::WorkPtr Backend::allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) {
  Operation operation{"fccl:all_reduce", OpType::ALLREDUCE, options.asyncOp, options.timeout, tensors, tensors};
  add_allreduce(operation, only(tensors, operation.title), options.reduceOp);
  return run(std::move(operation));
}

Backend::WorkPtr Backend::allreduce_coalesced(Tensors& tensors, const c10d::AllreduceCoalescedOptions& options) {
  Operation operation{
      "fccl:allreduce_coalesced", OpType::ALLREDUCE_COALESCED, options.asyncOp, options.timeout, tensors, tensors};
  for (const at::Tensor& tensor : tensors) add_allreduce(operation, tensor, options.reduceOp);
  return run(std::move(operation));
}

Backend::WorkPtr Backend::reduce(Tensors& tensors, const c10d::ReduceOptions& options) {
  Operation operation{"fccl:reduce", OpType::REDUCE, options.asyncOp, options.timeout, tensors, tensors};
  const at::Tensor& tensor = only(tensors, operation.title);
  check_root(options.rootRank, getSize(), operation.title);
  const Elements elements = operands_of(tensor, options.reduceOp, operation.title);
  const Reduction reduction = reduction_of(options.reduceOp, elements.type, tensor, operation.title);
  const int root = static_cast<int>(options.rootRank);
  if (reduction.device_factor.defined()) operation.staging.push_back(reduction.device_factor);
  const Source source = readable_block(operation, tensors);
  const Target target = getRank() == root ? writable_in_place(source) : Target{source.block.data};
  add_call(operation, target, [=, data = source.block.data](fcclComm_t comm, fcclStream_t stream) {
    return with_operator(reduction, elements.type, comm, [&](fcclRedOp_t red_op) {
      return fcclReduce(data, data, elements.count, elements.type, red_op, root, comm, stream);
    });
  });
  return run(std::move(operation));
}

Backend::WorkPtr Backend::allgather(TensorLists& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) {
  Operation operation{"fccl:all_gather", OpType::ALLGATHER, options.asyncOp, options.timeout, inputs};
  const at::Tensor& input = only(inputs, operation.title);
  operation.outputs = only_list(outputs, input, getSize(), operation.title);
  add_allgather(operation, operation.outputs, input);
  return run(std::move(operation));
}

Backend::WorkPtr Backend::allgather_coalesced(TensorLists& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) {
  Operation operation{"fccl:all_gather_coalesced", OpType::ALLGATHER_COALESCED, options.asyncOp, options.timeout, inputs};
  TORCH_CHECK_VALUE(outputs.size() == static_cast<size_t>(getSize()), operation.title, ": expected one list per rank (",
                    getSize(), "), got ", outputs.size());
  for (const Tensors& list : outputs) check_pairs(list, inputs, operation.title);
  for (size_t i = 0; i < inputs.size(); ++i) {
    check_tensor(inputs[i], operation.title);
    TensorLists parts(1);
    for (const Tensors& list : outputs) parts[0].push_back(list[i]);
    add_allgather(operation, only_list(parts, inputs[i], getSize(), operation.title), inputs[i]);
    operation.outputs.insert(operation.outputs.end(), parts[0].begin(), parts[0].end());
  }
  return run(std::move(operation));
}

Backend::WorkPtr Backend::_allgather_base(at::Tensor& output, at::Tensor& input, const c10d::AllgatherOptions& options) {
  Operation operation{"fccl:_all_gather_base", OpType::_ALLGATHER_BASE, options.asyncOp, options.timeout, {input}, {output}};
  check_whole(output, input, getSize(), operation.title);
  add_allgather(operation, {output}, input);
  return run(std::move(operation));
}

Backend::WorkPtr Backend::allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                                          const c10d::AllgatherOptions& options) {
  Operation operation{
      "fccl:all_gather_into_tensor_coalesced", OpType::COALESCED, options.asyncOp, options.timeout, inputs, outputs};
  check_pairs(outputs, inputs, operation.title);
  for (size_t i = 0; i < inputs.size(); ++i) {
    check_whole(outputs[i], inputs[i], getSize(), operation.title);
    add_allgather(operation, {outputs[i]}, inputs[i]);
  }
  return run(std::move(operation));
}

Backend::WorkPtr Backend::reduce_scatter(Tensors& outputs, TensorLists& inputs, const c10d::ReduceScatterOptions& options) {
  Operation operation{"fccl:reduce_scatter", OpType::REDUCE_SCATTER, options.asyncOp, options.timeout, {}, outputs};
  const at::Tensor& output = only(outputs, operation.title);
  operation.inputs = only_list(inputs, output, getSize(), operation.title);
  add_reduce_scatter(operation, output, operation.inputs, options.reduceOp);
  return run(std::move(operation));
}

Backend::WorkPtr Backend::_reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                               const c10d::ReduceScatterOptions& options) {
  Operation operation{
      "fccl:_reduce_scatter_base", OpType::_REDUCE_SCATTER_BASE, options.asyncOp, options.timeout, {input}, {output}};
  check_whole(input, output, getSize(), operation.title);
  add_reduce_scatter(operation, output, {input}, options.reduceOp);
  return run(std::move(operation));
}

Backend::WorkPtr Backend::reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                                          const c10d::ReduceScatterOptions& options) {
  Operation operation{
      "fccl:reduce_scatter_tensor_coalesced", OpType::COALESCED, options.asyncOp, options.timeout, inputs, outputs};
  check_pairs(outputs, inputs, operation.title);
  for (size_t i = 0; i < inputs.size(); ++i) {
    check_whole(inputs[i], outputs[i], getSize(), operation.title);
    add_reduce_scatter(operation, outputs[i], {inputs[i]}, options.reduceOp);
  }
  return run(std::move(operation));
}

Backend::WorkPtr Backend::gather(TensorLists& outputs, Tensors& inputs, const c10d::GatherOptions& options) {
  Operation operation{"fccl:gather", OpType::GATHER, options.asyncOp, options.timeout, inputs};
  const at::Tensor& input = only(inputs, operation.title);
  check_root(options.rootRank, getSize(), operation.title);
  const Elements part = elements_of(input);
  const int root = static_cast<int>(options.rootRank);
  const Block send = readable_block(operation, inputs).block;
  Target target{nullptr};
  if (getRank() == root) {
    operation.outputs = only_list(outputs, input, getSize(), operation.title);
    target = writable_whole(operation, operation.outputs, send, root);
  }
  add_call(operation, target, [=, send = send.data, receive = target.data](fcclComm_t comm, fcclStream_t stream) {
    return fcclGather(send, receive, part.count, part.type, root, comm, stream);
  });
  return run(std::move(operation));
}

Backend::WorkPtr Backend::scatter(Tensors& outputs, TensorLists& inputs, const c10d::ScatterOptions& options) {
  Operation operation{"fccl:scatter", OpType::SCATTER, options.asyncOp, options.timeout, {}, outputs};
  const at::Tensor& output = only(outputs, operation.title);
  check_root(options.rootRank, getSize(), operation.title);
  const Elements part = elements_of(output);
  const int root = static_cast<int>(options.rootRank);
  Block send{nullptr, 0};
  if (getRank() == root) {
    operation.inputs = only_list(inputs, output, getSize(), operation.title);
    send = readable_block(operation, operation.inputs).block;
  }
  const Target target = getRank() == root ? writable_part(operation, output, send, root) : writable_block(operation, outputs);
  add_call(operation, target, [=, send = send.data, receive = target.data](fcclComm_t comm, fcclStream_t stream) {
    return fcclScatter(send, receive, part.count, part.type, root, comm, stream);
  });
  return run(std::move(operation));
}

Backend::WorkPtr Backend::alltoall(Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions& options) {
  Operation operation{"fccl:all_to_all", OpType::ALLTOALL, options.asyncOp, options.timeout, inputs, outputs};
  check_equal_parts(inputs, inputs, getSize(), operation.title);
  check_equal_parts(outputs, inputs, getSize(), operation.title);
  add_alltoall(operation);
  return run(std::move(operation));
}

Backend::WorkPtr Backend::alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<int64_t>& output_sizes,
                                        std::vector<int64_t>& input_sizes, const c10d::AllToAllOptions& options) {
  Operation operation{"fccl:all_to_all_single", OpType::ALLTOALL_BASE, options.asyncOp, options.timeout, {input}, {output}};
  check_equal_splits(input, input_sizes, getSize(), operation.title);
  check_equal_splits(output, output_sizes, getSize(), operation.title);
  check_equal_parts(operation.outputs, operation.inputs, 1, operation.title);
  add_alltoall(operation);
  return run(std::move(operation));
}

Backend::WorkPtr Backend::allreduce_sparse(Tensors& /*tensors*/, const c10d::AllreduceOptions& /*options*/) {
  throw_not_yet("fccl:all_reduce of sparse tensors");
}

Backend::WorkPtr Backend::send(Tensors& /*tensors*/, int /*destination*/, int /*tag*/) { throw_not_yet("fccl:send"); }

Backend::WorkPtr Backend::recv(Tensors& /*tensors*/, int /*source*/, int /*tag*/) { throw_not_yet("fccl:recv"); }

Backend::WorkPtr Backend::recvAnysource(Tensors& /*tensors*/, int /*tag*/) { throw_not_yet("fccl:recv from any rank"); }

void Backend::monitoredBarrier(const c10d::BarrierOptions& /*options*/, bool /*wait_all_ranks*/) {
  throw_not_yet("fccl:monitored_barrier");
}

}  // namespace fccl
