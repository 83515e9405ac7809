// Makes the backend known to torch without a symbol of Python: operators in torch.ops.fccl.
#include <torch/library.h>

#include <chrono>
#include <string>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <tuple>
#include <vector>

#include "accelerator.h"
#include "arena.h"
#include "backend.h"
#include "bootstrap.h"
#include "completions.h"
#include "direct_calls.h"
#include "errors.h"
#include "estimate.h"
#include "fccl/fccl.h"

namespace fccl::torch {
namespace {

using Group = c10::intrusive_ptr<c10d::ProcessGroup>;

// Makes a process group whose backend is fccl, with the rank, size and store of `blank`; `at_once` makes its communicator of
// CPU memory now.
Group make_process_group(const Group& blank, std::string name, int64_t timeout_ms, bool at_once) {
  Completions::of_process().start();
  const Membership membership{blank->getRank(), blank->getSize(), std::chrono::milliseconds(timeout_ms), std::move(name)};
  auto group = c10::make_intrusive<c10d::ProcessGroup>(membership.rank, membership.size);
  auto backend = c10::make_intrusive<Backend>(membership, blank->getStore(), "fccl_unique_id_");
  if (at_once) backend->connect(c10::kCPU);
  group->setBackend(c10::DeviceType::CPU, c10d::ProcessGroup::CUSTOM, backend);
  group->setDefaultBackend(c10d::ProcessGroup::CUSTOM);
  return group;
}

// Lists names, calls, bytes and seconds of this process's collectives, one entry per collective.
std::tuple<std::vector<std::string>, std::vector<int64_t>, std::vector<int64_t>, std::vector<double>> counters() {
  std::vector<std::string> names;
  std::vector<int64_t> calls;
  std::vector<int64_t> bytes;
  std::vector<double> seconds;
  for (int coll = 0; coll < fcclNumColls; ++coll) {
    fcclCounter_t counter;
    const auto collective = static_cast<fcclColl_t>(coll);
    check(fcclGetProcessCounter(collective, &counter), "fccl: reading counters");
    names.emplace_back(fcclCollName(collective));
    calls.push_back(static_cast<int64_t>(counter.calls));
    bytes.push_back(static_cast<int64_t>(counter.bytes));
    seconds.push_back(counter.seconds);
  }
  return {names, calls, bytes, seconds};
}

// It asks again if the text has grown in between: no reader wants a half line.
std::string metrics_text(bool host) {
  std::string text;
  for (size_t length = 0;; text.resize(length + length / 4 + 1)) {
    check(fcclGetMetricsText(host ? 1 : 0, text.data(), text.size(), &length), "fccl: reading metrics");
    if (length < text.size()) return text.substr(0, length);
  }
}

// Called when Python ends; a callback that waits for a dead rank must not keep the process alive.
void finish_callbacks() { Completions::of_process().close(std::chrono::seconds(10)); }

}  // namespace
}  // namespace fccl::torch

TORCH_LIBRARY(fccl, library) {
  library.def(
      "make_process_group(__torch__.torch.classes.c10d.ProcessGroup blank, str name, int timeout_ms, bool at_once)"
      " -> __torch__.torch.classes.c10d.ProcessGroup",
      fccl::torch::make_process_group);
  // Used by tests that have a device of their own.
  library.def("stand_in_for_cuda(str device_type) -> ()", fccl::torch::stand_in_for_cuda);
  library.def("allocate_cpu_tensors_in_arena() -> ()", fccl::torch::allocate_cpu_tensors_in_arena);
  library.def("all_reduce_(Tensor(a!) tensor, str op, str group) -> ()", fccl::torch::all_reduce_in_place);
  library.def("finish_callbacks() -> ()", fccl::torch::finish_callbacks);
  library.def("start_estimate() -> ()", fccl::torch::start_estimate);
  library.def("end_estimate() -> float", [] { return static_cast<double>(fccl::torch::end_estimate()); });
  library.def("counters() -> (str[] names, int[] calls, int[] bytes, float[] seconds)", fccl::torch::counters);
  library.def("metrics_text(bool host) -> str", fccl::torch::metrics_text);
}
