// Tests that a lane of a GPU is freed when the GPU has finished with it, and not before.
#include "device_calls/retired_lanes.h"

#include <gtest/gtest.h>

#include "devices/pinned_pages.h"
#include "devices/simulated_gpu.h"

namespace fccl::core {
namespace {

// A lane whose queue waits for the user's stream, which waits for a word.
class RetiredLanesTest : public ::testing::Test {
 public:
  ~RetiredLanesTest() override {
    pages.reset();
    use.reset();
  }

 protected:
  std::unique_ptr<DeviceLane> make_lane() const { return DeviceLane::make(gpu, {.buffer_bytes = PinnedPages::page()}).value(); }
  void hold(DeviceLane& lane) {
    const WordOperation wait{WordOperation::Kind::wait_for, pages->device(), 1};
    ASSERT_TRUE(gpu->words(user, {&wait, 1}));
    ASSERT_TRUE(lane.fork(user));
  }
  void let_go() {
    release_to_device(pages->word(), 1);
    gpu->synchronize(user);
  }

  std::shared_ptr<simulated::SimulatedGpu> gpu =
      std::make_shared<simulated::SimulatedGpu>(simulated::GpuOptions{.set_up_waits = false});
  std::unique_ptr<Device::Use> use = std::make_unique<Device::Use>(*gpu);
  std::unique_ptr<PinnedPages> pages = std::make_unique<PinnedPages>(*gpu, 1);
  Queue user = gpu->make_user_queue();
  RetiredLanes retired;
};

TEST_F(RetiredLanesTest, frees_a_lane_that_the_gpu_has_finished_with) {
  retired.add(make_lane());
  EXPECT_EQ(retired.count(), 1U);
  retired.free_idle();
  EXPECT_EQ(retired.count(), 0U);
}

TEST_F(RetiredLanesTest, keeps_a_lane_while_the_gpu_is_at_work_on_it) {
  auto lane = make_lane();
  hold(*lane);
  const DeviceLane& kept = *lane;
  retired.add(std::move(lane));
  retired.free_idle();
  EXPECT_EQ(retired.count(), 1U);
  let_go();
  while (!kept.is_idle().value()) std::this_thread::yield();
  retired.free_idle();
  EXPECT_EQ(retired.count(), 0U);
}

TEST_F(RetiredLanesTest, ends_what_the_gpu_awaits_of_the_host) {
  auto lane = make_lane();
  ASSERT_TRUE(lane->enqueue({lane->memory().wait(lane->words().finished, lane->take_numbers(1))}));
  const DeviceLane& kept = *lane;
  EXPECT_FALSE(kept.is_idle().value());
  retired.add(std::move(lane));
  while (!kept.is_idle().value()) std::this_thread::yield();
  retired.free_idle();
  EXPECT_EQ(retired.count(), 0U);
}

}  // namespace
}  // namespace fccl::core
