// Sends and receives of torch: each on a stream of its own, since they wait for no other call of this rank.
#include <cstddef>
#include <exception>
#include <iterator>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "backend.h"
#include "errors.h"
#include "staging.h"

namespace fccl::torch {
namespace {

using c10d::OpType;

Operation transfer_of(const char* title, OpType type) {
  Operation operation{title, type, /*async=*/true, kNoTimeout};
  operation.source = std::make_shared<int>(-1);
  return operation;
}

// Transfers that a thread gathers between startCoalescing and endCoalescing of a group, and the last work of another kind in
// between.
struct Together {
  std::vector<Operation> transfers;
  Backend::WorkPtr other;
};

std::map<const Backend*, Together>& together_of_thread() {
  thread_local std::map<const Backend*, Together> together;
  return together;
}

// Drops a thread's gathered transfers after an error: torch then does not call the end of the batch.
class DropOnError {
 public:
  explicit DropOnError(const Backend* group) : group_(group), errors_(std::uncaught_exceptions()) {}
  DropOnError(const DropOnError&) = delete;
  DropOnError& operator=(const DropOnError&) = delete;
  ~DropOnError() {
    if (std::uncaught_exceptions() > errors_) together_of_thread().erase(group_);
  }

 private:
  const Backend* group_;
  int errors_;
};

// Makes one operation that issues all calls together, so that none waits for another.
Operation merged(std::vector<Operation> transfers) {
  Operation all = transfer_of("fccl:coalesced", OpType::COALESCED);
  std::vector<Step> calls, copies_out;
  const auto move_all = [](auto& from, auto& to) {
    to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
  };
  for (Operation& one : transfers) {
    const auto call = one.steps.begin() + static_cast<std::ptrdiff_t>(one.call_at);
    all.steps.insert(all.steps.end(), one.steps.begin(), call);
    calls.push_back(*call);
    copies_out.insert(copies_out.end(), call + 1, one.steps.end());
    move_all(one.inputs, all.inputs);
    move_all(one.outputs, all.outputs);
    move_all(one.staging, all.staging);
    all.copies |= one.copies;
    all.packs |= one.packs;
  }
  all.steps.emplace_back([calls = std::move(calls)](fcclComm_t comm, fcclStream_t stream) {
    (void)fcclGroupStart();
    // fcclGroupEnd returns the error of a refused call.
    for (const Step& call : calls)
      if (call(comm, stream) != fcclSuccess) break;
    return fcclGroupEnd();
  });
  move_all(copies_out, all.steps);
  return all;
}

void add_receive(Operation& operation, int source, int tag) {
  const Elements elements = elements_of(only(operation.outputs, operation.title));
  const Target target = writable_block(operation, operation.outputs);
  const auto sender = operation.source;
  add_call(operation, target, [=, data = target.data](fcclComm_t comm, fcclStream_t stream) {
    return fcclRecvTagged(data, elements.count, elements.type, source, tag, sender.get(), comm, stream);
  });
}

}  // namespace

Backend::WorkPtr Backend::send(Tensors& tensors, int destination, int tag) {
  const DropOnError guard(this);
  Operation operation = transfer_of("fccl:send", OpType::SEND);
  operation.inputs = tensors;
  const Elements elements = elements_of(only(tensors, operation.title));
  const Block block = readable_block(operation, tensors).block;
  add_call(operation, {nullptr}, [=](fcclComm_t comm, fcclStream_t stream) {
    return fcclSendTagged(block.data, elements.count, elements.type, destination, tag, comm, stream);
  });
  return run_or_gather(std::move(operation));
}

Backend::WorkPtr Backend::recv(Tensors& tensors, int source, int tag) {
  const DropOnError guard(this);
  Operation operation = transfer_of("fccl:recv", OpType::RECV);
  operation.outputs = tensors;
  // The library would read a negative source as any source.
  TORCH_CHECK_VALUE(source >= 0, operation.title, ": the source must be a rank of the group (0 to ", getSize() - 1, "), got ",
                    source);
  add_receive(operation, source, tag);
  return run_or_gather(std::move(operation));
}

Backend::WorkPtr Backend::recvAnysource(Tensors& tensors, int tag) {
  const DropOnError guard(this);
  Operation operation = transfer_of("fccl:recvAnySource", OpType::RECVANYSOURCE);
  operation.outputs = tensors;
  add_receive(operation, FCCL_ANY_SOURCE, tag);
  return run_or_gather(std::move(operation));
}

void Backend::startCoalescing() { together_of_thread()[this] = {}; }

Backend::WorkPtr Backend::endCoalescing() {
  auto gathered = together_of_thread().extract(this);
  if (gathered.empty()) return nullptr;
  Together& together = gathered.mapped();
  if (together.transfers.empty()) return together.other;
  if (together.other) throw_not_implemented("fccl:coalesced of collectives together with sends or receives");
  return run(merged(std::move(together.transfers)));
}

// A gathered transfer has no work yet that the caller could wait for.
Backend::WorkPtr Backend::run_or_gather(Operation operation) {
  const auto found = together_of_thread().find(this);
  if (found == together_of_thread().end()) return run(std::move(operation));
  found->second.transfers.push_back(std::move(operation));
  return nullptr;
}

void Backend::note(const WorkPtr& work) const {
  const auto found = together_of_thread().find(this);
  if (found != together_of_thread().end()) found->second.other = work;
}

}  // namespace fccl::torch
