// Finds the group's backend by name, and calls it.
#include "direct_calls.h"

#include <c10/util/Exception.h>

#include <array>
#include <torch/csrc/distributed/c10d/GroupRegistry.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <utility>
#include <vector>

#include "backend.h"

namespace fccl::torch {
namespace {

using c10d::ReduceOp;

constexpr std::array<std::pair<const char*, ReduceOp::RedOpType>, 8> kOperators{{{"sum", ReduceOp::SUM},
                                                                                 {"avg", ReduceOp::AVG},
                                                                                 {"product", ReduceOp::PRODUCT},
                                                                                 {"min", ReduceOp::MIN},
                                                                                 {"max", ReduceOp::MAX},
                                                                                 {"band", ReduceOp::BAND},
                                                                                 {"bor", ReduceOp::BOR},
                                                                                 {"bxor", ReduceOp::BXOR}}};

ReduceOp::RedOpType operator_of(const std::string& name) {
  for (const auto& [known, op] : kOperators)
    if (name == known) return op;
  C10_THROW_ERROR(ValueError,
                  c10::str("fccl::all_reduce_: op is '", name, "'; give sum, avg, product, min, max, band, bor or bxor"));
}

}  // namespace

void all_reduce_in_place(at::Tensor tensor, const std::string& op, const std::string& group) {
  const auto found = c10d::resolve_process_group(group)->getBackend(tensor.device().type());
  auto* backend = dynamic_cast<Backend*>(found.get());
  TORCH_CHECK_VALUE(backend != nullptr, "fccl::all_reduce_: the backend of group '", group, "' for ", tensor.device(),
                    " is not fccl but ", found->getBackendName());
  c10d::AllreduceOptions options;
  options.reduceOp = operator_of(op);
  options.asyncOp = false;
  std::vector<at::Tensor> tensors{std::move(tensor)};
  const auto work = backend->allreduce(tensors, options);
  if (!tensors[0].is_cpu()) work->wait();
}

}  // namespace fccl::torch
