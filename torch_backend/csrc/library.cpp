// Makes the backend known to torch without a symbol of Python: operators in torch.ops.fccl.
#include <torch/library.h>

#include <chrono>
#include <string>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <tuple>
#include <vector>

#include "backend.h"
#include "bootstrap.h"
#include "completions.h"
#include "errors.h"
#include "fccl/fccl.h"

namespace fccl {
namespace {

using Group = c10::intrusive_ptr<c10d::ProcessGroup>;

// A process group whose backend is fccl, with the rank, size and store of `blank`.
Group make_process_group(const Group& blank, std::string name, int64_t timeout_ms) {
  Completions::of_process().start();
  const Membership membership{blank->getRank(), blank->getSize(), std::chrono::milliseconds(timeout_ms), std::move(name)};
  auto group = c10::make_intrusive<c10d::ProcessGroup>(membership.rank, membership.size);
  const fcclComm_t comm = join(*blank->getStore(), membership);
  group->setBackend(c10::DeviceType::CPU, c10d::ProcessGroup::CUSTOM, c10::make_intrusive<Backend>(comm, membership));
  group->setDefaultBackend(c10d::ProcessGroup::CUSTOM);
  return group;
}

// Names, calls, bytes and seconds of this process's collectives, one entry per collective.
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

// Called when Python ends; a callback that waits for a rank that is gone may not keep the process.
void finish_callbacks() { Completions::of_process().close(std::chrono::seconds(10)); }

}  // namespace
}  // namespace fccl

TORCH_LIBRARY(fccl, library) {
  library.def(
      "make_process_group(__torch__.torch.classes.c10d.ProcessGroup blank, str name, int timeout_ms)"
      " -> __torch__.torch.classes.c10d.ProcessGroup",
      fccl::make_process_group);
  library.def("finish_callbacks() -> ()", fccl::finish_callbacks);
  library.def("counters() -> (str[] names, int[] calls, int[] bytes, float[] seconds)", fccl::counters);
}
