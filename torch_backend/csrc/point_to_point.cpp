// Sends and receives of torch: each on a stream of its own, since they wait for no other call of this rank.
#include <memory>
#include <utility>

#include "backend.h"
#include "errors.h"
#include "staging.h"

namespace fccl {
namespace {

using c10d::OpType;

Operation transfer_of(const char* title, OpType type) {
  Operation operation{title, type, /*async=*/true, kNoTimeout};
  operation.source = std::make_shared<int>(-1);
  return operation;
}

// Refused before the group makes a communicator for the device, which would wait for ranks that take no part.
const at::Tensor& only_of_host(const Backend::Tensors& tensors, const char* title) {
  const at::Tensor& tensor = only(tensors, title);
  if (tensor.device().is_cpu()) return tensor;
  check(fcclNotImplemented, title,
        "sends and receives of CUDA memory are not implemented yet in this version of FCCL: make them of CPU tensors");
  return tensor;
}

void add_receive(Operation& operation, int source, int tag) {
  const Elements elements = elements_of(only_of_host(operation.outputs, operation.title));
  const Target target = writable_block(operation, operation.outputs);
  const auto sender = operation.source;
  add_call(operation, target, [=, data = target.data](fcclComm_t comm, fcclStream_t stream) {
    return fcclRecvTagged(data, elements.count, elements.type, source, tag, sender.get(), comm, stream);
  });
}

}  // namespace

Backend::WorkPtr Backend::send(Tensors& tensors, int destination, int tag) {
  Operation operation = transfer_of("fccl:send", OpType::SEND);
  operation.inputs = tensors;
  const Elements elements = elements_of(only_of_host(tensors, operation.title));
  const Block block = readable_block(operation, tensors).block;
  operation.steps.emplace_back([=](fcclComm_t comm, fcclStream_t stream) {
    return fcclSendTagged(block.data, elements.count, elements.type, destination, tag, comm, stream);
  });
  return run(std::move(operation));
}

Backend::WorkPtr Backend::recv(Tensors& tensors, int source, int tag) {
  Operation operation = transfer_of("fccl:recv", OpType::RECV);
  operation.outputs = tensors;
  // The library would take it for any source.
  TORCH_CHECK_VALUE(source >= 0, operation.title, ": the source must be a rank of the group (0 to ", getSize() - 1, "), got ",
                    source);
  add_receive(operation, source, tag);
  return run(std::move(operation));
}

Backend::WorkPtr Backend::recvAnysource(Tensors& tensors, int tag) {
  Operation operation = transfer_of("fccl:recvAnySource", OpType::RECVANYSOURCE);
  operation.outputs = tensors;
  add_receive(operation, FCCL_ANY_SOURCE, tag);
  return run(std::move(operation));
}

}  // namespace fccl
