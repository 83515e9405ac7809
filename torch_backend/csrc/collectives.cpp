// Turns torch's collectives with equal parts into operations: their checks, their library calls, their staging.
#include <utility>

#include "backend.h"
#include "errors.h"
#include "staging.h"

namespace fccl::torch {
namespace {

using c10d::OpType;

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
  if (!are_equal(counts_of(outputs))) return add_allgather_v(operation, outputs, input);
  const Elements part = elements_of(input);
  const Block send = readable_block(operation, {input}).block;
  const Target target = writable_whole(operation, outputs, send, getRank() * send.bytes);
  add_call(operation, target, [=, send = send.data, receive = target.data](fcclComm_t comm, fcclStream_t stream) {
    return fcclAllGather(send, receive, part.count, part.type, comm, stream);
  });
}

void Backend::add_reduce_scatter(Operation& operation, const at::Tensor& output, const Tensors& inputs,
                                 const c10d::ReduceOp& op) const {
  if (!are_equal(counts_of(inputs))) return add_reduce_scatter_v(operation, output, inputs, op);
  const fcclDataType_t type = operands_of(inputs.front(), op, operation.title).type;
  const Elements result = operands_of(output, op, operation.title);
  const Reduction reduction = reduction_of(op, type, inputs.front(), operation.title);
  if (reduction.device_factor.defined()) operation.staging.push_back(reduction.device_factor);
  const Block send = readable_block(operation, inputs).block;
  const Target target = writable_part(operation, output, send, getRank() * output.nbytes());
  add_call(operation, target, [=, send = send.data, receive = target.data](fcclComm_t comm, fcclStream_t stream) {
    return with_operator(reduction, type, comm, [&](fcclRedOp_t red_op) {
      return fcclReduceScatterTyped(send, receive, result.count, type, result.type, red_op, comm, stream);
    });
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
  // torch itself calls allreduce_sparse only for tensors on a device.
  if (tensors.size() == 1 && tensors[0].layout() == at::kSparse) return allreduce_sparse(tensors, options);
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
  operation.outputs = only_parts(outputs, input, getRank(), getSize(), operation.title);
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
    add_allgather(operation, only_parts(parts, inputs[i], getRank(), getSize(), operation.title), inputs[i]);
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
  operation.inputs = only_parts(inputs, output, getRank(), getSize(), operation.title);
  add_reduce_scatter(operation, output, operation.inputs, options.reduceOp);
  return run(std::move(operation));
}

Backend::WorkPtr Backend::_reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                               const c10d::ReduceScatterOptions& options) {
  Operation operation{
      "fccl:_reduce_scatter_base", OpType::_REDUCE_SCATTER_BASE, options.asyncOp, options.timeout, {input}, {output}};
  check_summands(input, output, getSize(), operation.title);
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

void Backend::add_gather(Operation& operation, const at::Tensor& input, int root) const {
  const Elements part = elements_of(input);
  const Block send = readable_block(operation, {input}).block;
  Target target{nullptr};
  if (getRank() == root) target = writable_whole(operation, operation.outputs, send, root * send.bytes);
  add_call(operation, target, [=, send = send.data, receive = target.data](fcclComm_t comm, fcclStream_t stream) {
    return fcclGather(send, receive, part.count, part.type, root, comm, stream);
  });
}

Backend::WorkPtr Backend::gather(TensorLists& outputs, Tensors& inputs, const c10d::GatherOptions& options) {
  Operation operation{"fccl:gather", OpType::GATHER, options.asyncOp, options.timeout, inputs};
  const at::Tensor& input = only(inputs, operation.title);
  check_root(options.rootRank, getSize(), operation.title);
  const int root = static_cast<int>(options.rootRank);
  if (getRank() == root) operation.outputs = only_list(outputs, input, getSize(), operation.title);
  add_gather(operation, input, root);
  return run(std::move(operation));
}

Backend::WorkPtr Backend::gather_single(at::Tensor& output, at::Tensor& input, const c10d::GatherOptions& options) {
  Operation operation{"fccl:gather_single", OpType::GATHER, options.asyncOp, options.timeout, {input}};
  check_root(options.rootRank, getSize(), operation.title);
  const int root = static_cast<int>(options.rootRank);
  if (getRank() == root) {
    check_whole(output, input, getSize(), operation.title);
    operation.outputs = {output};
  } else {
    check_tensor(input, operation.title);
  }
  add_gather(operation, input, root);
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
  const Target target =
      getRank() == root ? writable_part(operation, output, send, root * output.nbytes()) : writable_block(operation, outputs);
  add_call(operation, target, [=, send = send.data, receive = target.data](fcclComm_t comm, fcclStream_t stream) {
    return fcclScatter(send, receive, part.count, part.type, root, comm, stream);
  });
  return run(std::move(operation));
}

}  // namespace fccl::torch
