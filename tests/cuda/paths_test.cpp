// Every collective of every size by each path of CUDA memory: the bits are those that CPU memory has, which a trial works out.
#include "cuda/landed_calls.h"

namespace fccl::core::testing {
namespace {

// Around the size of a slot, of a sub-call and of a rank's share, and odd ones.
constexpr size_t kCounts[] = {0, 1, 3, 16, 37, 64, 255, 256, 257, 515, 1023, 1024, 1025, 2049, 4097, 20'001};
static_assert(std::size(kCounts) == 16);

class CudaPaths : public ::testing::TestWithParam<const char*> {
 protected:
  const Setting path{"FCCL_CUDA_PATH", GetParam()};
  const Setting slots{"FCCL_CUDA_LANDING", kSmallSlots};
  const Setting buffer{"FCCL_CUDA_BUFFER", "4096"};
};

void expect_every_size(CudaSeat& seat) { expect_every_collective(seat, kCounts); }

TEST_P(CudaPaths, give_processes_which_lend_each_other_memory_every_size) {
  if (!sees_processes()) GTEST_SKIP() << "the thread sanitizer sees one process";
  run_on_gpus({.ranks = 3, .host_of = {0, 0, 0}}, expect_every_size);
}

class CudaPathsCampaign : public CudaPaths {};

TEST_P(CudaPathsCampaign, give_up_to_eight_threads_every_size) {
  for (int ranks = 1; ranks <= 8; ++ranks)
    run_on_gpus({.ranks = ranks, .gpus = ranks, .limit = std::chrono::seconds(600)}, expect_every_size);
}

TEST_P(CudaPathsCampaign, give_up_to_eight_processes_every_size) {
  if (!sees_processes()) GTEST_SKIP() << "the thread sanitizer sees one process";
  for (int ranks = 2; ranks <= 8; ++ranks)
    run_on_gpus(
        {.ranks = ranks, .limit = std::chrono::seconds(600), .host_of = std::vector<int>(static_cast<size_t>(ranks), 0)},
        expect_every_size);
}

constexpr const char* kPaths[] = {"bounce", "host", "peer"};

INSTANTIATE_TEST_SUITE_P(By, CudaPathsCampaign, ::testing::ValuesIn(kPaths), [](const auto& info) { return info.param; });
INSTANTIATE_TEST_SUITE_P(By, CudaPaths, ::testing::ValuesIn(kPaths), [](const auto& info) { return info.param; });

}  // namespace
}  // namespace fccl::core::testing
