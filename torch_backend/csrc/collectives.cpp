// Each collective of torch as an operation of the backend: its checks, its library calls, its staging.
#include "backend.h"
#include "errors.h"

namespace fccl {
namespace {

using c10d::OpType;

// Adds a staging buffer for `tensors`, kept alive by the operation.
void* add_staging(Operation& operation, const Backend::Tensors& tensors) {
  return operation.staging.emplace_back(staging_for(tensors)).data_ptr();
}

// Adds a staging buffer that is copied to `tensors` at the end.
void* add_result_staging(Operation& operation, const Backend::Tensors& tensors) {
  void* const staging = add_staging(operation, tensors);
  const std::vector<Copy> copies = copies_from(staging, tensors);
  operation.copies_back.insert(operation.copies_back.end(), copies.begin(), copies.end());
  return staging;
}

// `tensors` as one block to read: where they lie, or a staging buffer filled from them.
const void* readable_block(Operation& operation, const Backend::Tensors& tensors) {
  if (const auto block = as_one_block(tensors)) return *block;
  void* const staging = add_staging(operation, tensors);
  perform(copies_into(staging, tensors));
  return staging;
}

// `tensors` as one block to write while `input` is read, which may overlap it only as the library's in-place form does: at this
// rank's place. Otherwise a staging buffer.
void* writable_block(Operation& operation, const Backend::Tensors& tensors, const at::Tensor& input, int rank) {
  if (const auto block = as_one_block(tensors)) {
    const void* const own_place = static_cast<char*>(*block) + static_cast<size_t>(rank) * input.nbytes();
    if (input.data_ptr() == own_place || !overlap(input, *block, total_bytes(tensors))) return *block;
  }
  return add_result_staging(operation, tensors);
}

// `output` to write while the block of all ranks' parts is read, with the same exception.
void* writable_part(Operation& operation, const at::Tensor& output, const void* block, size_t block_bytes, int rank) {
  const void* const own_place = static_cast<const char*>(block) + static_cast<size_t>(rank) * output.nbytes();
  if (output.data_ptr() == own_place || !overlap(output, block, block_bytes)) return output.data_ptr();
  return add_result_staging(operation, {output});
}

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
  const Elements elements = summands_of(tensor, operation.title);
  const Reduction reduction = reduction_of(op, elements.type, operation.title);
  void* const data = tensor.data_ptr();
  operation.calls.emplace_back([=](fcclComm_t comm, fcclStream_t stream) {
    return with_operator(reduction, elements.type, comm, [&](fcclRedOp_t red_op) {
      return fcclAllReduce(data, data, elements.count, elements.type, red_op, comm, stream);
    });
  });
}

void Backend::add_allgather(Operation& operation, const Tensors& outputs, const at::Tensor& input) const {
  const Elements part = elements_of(input);
  const void* const send = input.data_ptr();
  void* const receive = writable_block(operation, outputs, input, getRank());
  operation.calls.emplace_back(
      [=](fcclComm_t comm, fcclStream_t stream) { return fcclAllGather(send, receive, part.count, part.type, comm, stream); });
}

void Backend::add_reduce_scatter(Operation& operation, const at::Tensor& output, const Tensors& inputs,
                                 const c10d::ReduceOp& op) const {
  const Elements part = summands_of(output, operation.title);
  const Reduction reduction = reduction_of(op, part.type, operation.title);
  const void* const send = readable_block(operation, inputs);
  void* const receive = writable_part(operation, output, send, total_bytes(inputs), getRank());
  operation.calls.emplace_back([=](fcclComm_t comm, fcclStream_t stream) {
    return with_operator(reduction, part.type, comm, [&](fcclRedOp_t red_op) {
      return fcclReduceScatter(send, receive, part.count, part.type, red_op, comm, stream);
    });
  });
}

Backend::WorkPtr Backend::broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) {
  Operation operation{"fccl:broadcast", OpType::BROADCAST, options.asyncOp, options.timeout, tensors, tensors};
  const at::Tensor& tensor = only(tensors, operation.title);
  check_root(options.rootRank, getSize(), operation.title);
  const Elements elements = elements_of(tensor);
  void* const data = tensor.data_ptr();
  const int root = static_cast<int>(options.rootRank);
  operation.calls.emplace_back([=](fcclComm_t comm, fcclStream_t stream) {
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
  const Elements elements = summands_of(tensor, operation.title);
  const Reduction reduction = reduction_of(options.reduceOp, elements.type, operation.title);
  void* const data = tensor.data_ptr();
  const int root = static_cast<int>(options.rootRank);
  operation.calls.emplace_back([=](fcclComm_t comm, fcclStream_t stream) {
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
  const void* const send = input.data_ptr();
  const int root = static_cast<int>(options.rootRank);
  void* receive = nullptr;
  if (getRank() == root) {
    operation.outputs = only_list(outputs, input, getSize(), operation.title);
    receive = writable_block(operation, operation.outputs, input, root);
  }
  operation.calls.emplace_back([=](fcclComm_t comm, fcclStream_t stream) {
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
  const void* send = nullptr;
  void* receive = output.data_ptr();
  if (getRank() == root) {
    operation.inputs = only_list(inputs, output, getSize(), operation.title);
    send = readable_block(operation, operation.inputs);
    receive = writable_part(operation, output, send, total_bytes(operation.inputs), root);
  }
  operation.calls.emplace_back([=](fcclComm_t comm, fcclStream_t stream) {
    return fcclScatter(send, receive, part.count, part.type, root, comm, stream);
  });
  return run(std::move(operation));
}

Backend::WorkPtr Backend::barrier(const c10d::BarrierOptions& options) {
  Operation operation{"fccl:barrier", OpType::BARRIER, options.asyncOp, options.timeout};
  operation.calls.emplace_back([this](fcclComm_t comm, fcclStream_t stream) {
    // Who has passed a barrier expects what it issued before to be done.
    const bool blocking = stream == nullptr && stream_ != nullptr;
    const fcclResult_t earlier = blocking ? fcclStreamSynchronize(stream_) : fcclSuccess;
    return earlier != fcclSuccess ? earlier : fcclBarrier(comm, stream);
  });
  return run(std::move(operation));
}

Backend::WorkPtr Backend::allreduce_sparse(Tensors& /*tensors*/, const c10d::AllreduceOptions& /*options*/) {
  throw_not_yet("fccl:all_reduce of sparse tensors");
}

Backend::WorkPtr Backend::alltoall(Tensors& /*outputs*/, Tensors& /*inputs*/, const c10d::AllToAllOptions& /*options*/) {
  throw_not_yet("fccl:all_to_all");
}

Backend::WorkPtr Backend::alltoall_base(at::Tensor& /*output*/, at::Tensor& /*input*/, std::vector<int64_t>& /*output_sizes*/,
                                        std::vector<int64_t>& /*input_sizes*/, const c10d::AllToAllOptions& /*options*/) {
  throw_not_yet("fccl:all_to_all_single");
}

Backend::WorkPtr Backend::send(Tensors& /*tensors*/, int /*destination*/, int /*tag*/) { throw_not_yet("fccl:send"); }

Backend::WorkPtr Backend::recv(Tensors& /*tensors*/, int /*source*/, int /*tag*/) { throw_not_yet("fccl:recv"); }

Backend::WorkPtr Backend::recvAnysource(Tensors& /*tensors*/, int /*tag*/) { throw_not_yet("fccl:recv from any rank"); }

void Backend::monitoredBarrier(const c10d::BarrierOptions& /*options*/, bool /*wait_all_ranks*/) {
  throw_not_yet("fccl:monitored_barrier");
}

}  // namespace fccl
