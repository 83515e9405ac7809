// The way of a call of torch on a GPU to the driver, as the page of the architecture lists it.
#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <dlfcn.h>
#include <torch/custom_class.h>
#include <unistd.h>

#include <string>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <vector>

#include "frames/page.h"
#include "frames/stacks.h"
#include "processes/ranks.h"

// The fake driver calls it.
extern "C" __attribute__((visibility("default"))) void fake_driver_sees_copy() {
  fccl::core::testing::keep_stack(2);  // the driver's function is the second
}

namespace fccl::core::testing {
namespace {

using Group = c10::intrusive_ptr<c10d::ProcessGroup>;

const c10::Device kGpu(c10::kPrivateUse1, 0);

// Calls an operator of torch.ops.
torch::jit::Stack call(const char* name, torch::jit::Stack arguments) {
  c10::Dispatcher::singleton().findSchemaOrThrow(name, "").callBoxed(arguments);
  return arguments;
}

// Brings the device into this process, and the adapter with it.
void start() {
  ASSERT_NE(::dlopen(FCCL_TORCH_LIBRARY, RTLD_NOW), nullptr) << ::dlerror();
  call("stand_in::start", {});
  call("fccl::stand_in_for_cuda", {"privateuseone"});
}

Group group_of(const Seat& seat, const std::string& store) {
  const auto blank =
      c10::make_intrusive<c10d::ProcessGroup>(c10::make_intrusive<c10d::FileStore>(store, seat.ranks), seat.rank, seat.ranks);
  return call("fccl::make_process_group", {blank, "frames", int64_t{30'000}, false}).at(0).toCustomClass<c10d::ProcessGroup>();
}

// Two processes gather on one GPU by `path`; rank 0 compares the stacks from `outermost` on with the page.
void expect_gather_listed(const char* path, const std::string& outermost, const std::vector<std::string>& innermost,
                          size_t most) {
  const Setting gpus("FAKE_CUDA_GPUS", "1"), set_up("FAKE_CUDA_SET_UP_WAITS", "0"), chosen("FCCL_CUDA_PATH", path);
  const std::string store = ::testing::TempDir() + "fccl_torch_frames_" + path + std::to_string(::getpid());
  run_ranks({.as = RanksAs::processes, .ranks = 2}, [&](const Seat& seat) {
    start();
    const auto backend = group_of(seat, store)->getBackend(c10::kCPU);
    const int64_t count = 1000;
    std::vector<at::Tensor> mine{at::full({count}, seat.rank + 1.0F).to(kGpu)};
    at::Tensor whole = at::zeros({2 * count}).to(kGpu);
    std::vector<std::vector<at::Tensor>> all{{whole.narrow(0, 0, count), whole.narrow(0, count, count)}};
    c10d::AllgatherOptions options;
    options.asyncOp = false;
    backend->allgather(all, mine, options)->wait();  // makes the communicator
    Recording recording;
    backend->allgather(all, mine, options)->wait();
    if (seat.rank == 0) expect_listed(recording.below(outermost), innermost, most);
    EXPECT_EQ(whole.cpu()[-1].item<float>(), 2);
    backend->shutdown();
  });
  ::unlink(store.c_str());
}

TEST(TorchFrames, of_an_all_gather_on_a_gpu_are_those_of_the_page) {
  expect_gather_listed("bounce", "torch::Backend::allgather", {"CudaDevice::copy"}, 16);
}

TEST(TorchFrames, of_an_all_gather_by_slots_are_those_of_the_page) {
  expect_gather_listed("host", "LandedPath::run", {"CudaDevice::copy"}, 10);
}

}  // namespace
}  // namespace fccl::core::testing
