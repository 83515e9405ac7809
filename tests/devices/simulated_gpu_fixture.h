// SimulatedGpuTest: a simulated GPU of a test, whose queue the test holds.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>

#include "devices/pinned_pages.h"
#include "devices/simulated_gpu.h"

namespace fccl::core::simulated {

// A GPU whose misuse is an error, with a queue that waits at its first word, and a user's stream.
class SimulatedGpuTest : public testing::Test {
 public:
  ~SimulatedGpuTest() override { close(); }

 protected:
  void open(GpuOptions options) {
    options.abort_on_misuse = false;
    gpu_ = std::make_unique<SimulatedGpu>(options);
    use_ = std::make_unique<Device::Use>(*gpu_);
    pages = std::make_unique<PinnedPages>(*gpu_, 2);
    queue = gpu_->make_queue().value();
    other = gpu_->make_queue().value();
    memory = gpu_->allocate(MemoryPlace::this_device, 1000);
  }
  void close() {
    if (gpu_ == nullptr) return;
    release_to_device(pages->word(0), kFarAhead);
    gpu_->go_on();
    while (!gpu_->is_doing_nothing()) std::this_thread::yield();  // nobody looks at a word any more
    gpu_->break_down();
    pages.reset();
    use_.reset();
    gpu_.reset();
  }

  SimulatedGpu& gpu() { return *gpu_; }
  // Word 0 holds the queue until release().
  void hold(Queue queue) {
    const WordOperation wait{WordOperation::Kind::wait_for, pages->device(0), 1};
    ASSERT_TRUE(gpu().words(queue, {&wait, 1}));
  }
  void release() { release_to_device(pages->word(0), 1); }
  Result<void> write(Queue queue, size_t word) {
    const WordOperation operation{WordOperation::Kind::write, pages->device(word * 8), 1};
    return gpu().words(queue, {&operation, 1});
  }
  bool is_written(size_t word) { return has_come(pages->word(word * 8), 1); }
  Result<void> copy(Queue queue) { return gpu().copy(queue, {memory, memory + 500, 500}); }
  // True if `call`, on another thread with a Use, returns only after release().
  bool blocks_until_release(const std::function<void()>& call) {
    auto done = std::async(std::launch::async, [&] {
      const Device::Use use(gpu());
      call();
    });
    const bool blocked = done.wait_for(std::chrono::milliseconds(30)) == std::future_status::timeout;
    release();
    done.get();
    return blocked;
  }
  void expect_refused(const Result<void>& result, const std::string& what) {
    ASSERT_FALSE(result);
    EXPECT_NE(result.error().message.find(what), std::string::npos) << result.error().message;
  }

  std::unique_ptr<PinnedPages> pages;
  Queue queue, other;
  std::byte* memory = nullptr;

 private:
  std::unique_ptr<SimulatedGpu> gpu_;
  std::unique_ptr<Device::Use> use_;
};

}  // namespace fccl::core::simulated
