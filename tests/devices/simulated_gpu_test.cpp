// SimulatedGpu: that it is as bad as it promises, beyond what the conformance suite asks of every GPU.
#include "devices/simulated_gpu.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "devices/installed_gpus.h"
#include "devices/simulated_gpu_fixture.h"
#include "os/descriptor.h"

namespace fccl::core::simulated {

namespace {

using Kind = WordOperation::Kind;
using std::chrono::milliseconds;

using SimulatedGpuDeathTest = SimulatedGpuTest;

TEST_F(SimulatedGpuDeathTest, the_host_cannot_touch_its_memory) {
  open({});
  EXPECT_DEATH(*const_cast<volatile std::byte*>(memory) = std::byte{1}, "");
  EXPECT_DEATH(*const_cast<volatile std::byte*>(pages->device()) = std::byte{1}, "");
}

TEST(SimulatedGpuMisuseDeathTest, ends_the_process_with_a_sentence) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH((void)SimulatedGpu().make_queue(),
               "make_queue was called on a thread where simulated GPU 0 is not current; hold a Device::Use");
}

TEST_F(SimulatedGpuTest, a_full_queue_blocks_every_call_of_every_thread) {
  open({.queue_slots = 10});
  hold(queue);
  for (int entry = 1; entry < 10; ++entry) ASSERT_TRUE(copy(queue));
  std::atomic<bool> taken{false};
  std::thread full([&] {
    const Device::Use use(gpu());
    EXPECT_TRUE(copy(queue));
    taken.store(true);
  });
  std::this_thread::sleep_for(milliseconds(30));
  EXPECT_FALSE(taken.load());
  EXPECT_TRUE(blocks_until_release([&] { EXPECT_TRUE(gpu().is_idle(other)); }));
  full.join();
}

TEST_F(SimulatedGpuTest, set_up_and_free_wait_for_what_is_outstanding) {
  open({});
  PinnedPages more(gpu(), 1);
  std::byte* const freed = gpu().allocate(MemoryPlace::this_device, 10);
  const std::vector<std::function<void()>> calls = {[&] { (void)gpu().make_queue(); }, [&] { (void)gpu().make_mark(); },
                                                    [&] { gpu().drop(*gpu().make_queue()); },
                                                    [&] { const PinnedPages pinned(gpu(), 1); }, [&] { gpu().free(freed); }};
  for (size_t i = 0; i < calls.size(); ++i) {
    pages->word(0).store(0);
    hold(queue);
    EXPECT_TRUE(blocks_until_release(calls[i])) << "call " << i;
    gpu().synchronize(queue);
  }
}

TEST_F(SimulatedGpuTest, set_up_that_waits_keeps_all_others_waiting) {
  open({});
  hold(queue);
  std::thread waiting([&] {
    const Device::Use use(gpu());
    (void)gpu().make_mark();
  });
  std::this_thread::sleep_for(milliseconds(30));
  EXPECT_TRUE(blocks_until_release([&] { EXPECT_TRUE(write(other, 1)); }));
  waiting.join();
}

TEST_F(SimulatedGpuTest, a_copy_between_host_places_waits_for_its_queue_and_keeps_nobody_else_waiting) {
  open({});
  std::byte* const pinned = gpu().allocate(MemoryPlace::pinned_host, 100);
  std::atomic<bool> done{false};
  hold(queue);
  std::thread copying([&] {
    const Device::Use use(gpu());
    EXPECT_TRUE(gpu().copy(queue, {pages->device(64), pinned, 100}));
    done.store(true);
  });
  std::this_thread::sleep_for(milliseconds(30));
  EXPECT_FALSE(done.load());
  EXPECT_TRUE(gpu().is_idle(other));
  EXPECT_TRUE(write(other, 1));
  gpu().synchronize(other);
  EXPECT_FALSE(done.load());
  release();
  copying.join();
}

TEST_F(SimulatedGpuTest, a_queue_that_waits_holds_up_those_that_share_its_connection) {
  for (const int connections : {1, 2, 8}) {
    open({.connections = connections});
    std::vector<Queue> queues = {other};
    while (queues.size() < 8) queues.push_back(gpu().make_queue().value());
    hold(queue);
    for (size_t i = 0; i < queues.size(); ++i) ASSERT_TRUE(write(queues[i], i + 1));
    const auto shares = [&](size_t i) { return (i + 1) % static_cast<size_t>(connections) == 0; };
    for (size_t i = 0; i < queues.size(); ++i)
      if (!shares(i)) gpu().synchronize(queues[i]);
    std::this_thread::sleep_for(milliseconds(20));
    for (size_t i = 0; i < queues.size(); ++i) EXPECT_EQ(is_written(i + 1), !shares(i)) << i << " of " << connections;
    release();
    for (size_t i = 0; i < queues.size(); ++i) {
      gpu().synchronize(queues[i]);
      EXPECT_TRUE(is_written(i + 1));
    }
    close();
  }
}

TEST_F(SimulatedGpuTest, a_copy_that_waits_holds_up_copies_of_its_direction) {
  open({.connections = 1});
  hold(queue);
  ASSERT_TRUE(gpu().copy(queue, {pages->device(1000), memory, 100}));
  ASSERT_TRUE(gpu().copy(other, {memory + 500, pages->device(2000), 100}));
  gpu().synchronize(other);
  ASSERT_TRUE(gpu().copy(other, {pages->device(3000), memory, 100}));
  std::this_thread::sleep_for(milliseconds(20));
  EXPECT_FALSE(gpu().is_idle(other).value());
  release();
  gpu().synchronize(other);
}

TEST_F(SimulatedGpuTest, the_first_launch_of_a_kernel_waits_for_what_is_outstanding) {
  for (const bool lazily : {true, false}) {
    open({.loads_lazily = lazily});
    const auto kernel = [] {};
    hold(queue);
    EXPECT_EQ(blocks_until_release([&] { gpu().launch(other, kernel); }), lazily);
    gpu().synchronize(queue);
    pages->word(0).store(0);
    hold(queue);
    EXPECT_FALSE(blocks_until_release([&] { gpu().launch(other, kernel); })) << "it was loaded before";
    close();
  }
}

TEST_F(SimulatedGpuTest, a_kernel_that_was_loaded_is_launched_at_once) {
  open({});
  const auto kernel = [] {};
  gpu().load(kernel);
  hold(queue);
  EXPECT_FALSE(blocks_until_release([&] { gpu().launch(other, kernel); }));
}

TEST_F(SimulatedGpuTest, a_launch_that_loads_keeps_all_others_waiting) {
  open({});
  hold(queue);
  std::thread loading([&] { gpu().launch(other, [] {}); });
  std::this_thread::sleep_for(milliseconds(30));
  EXPECT_TRUE(blocks_until_release([&] { EXPECT_TRUE(write(queue, 1)); }));
  loading.join();
}

TEST_F(SimulatedGpuTest, a_kernel_that_runs_holds_up_no_other_queue) {
  open({.connections = 1});
  std::atomic<bool> ends{false};
  gpu().launch(queue, [&] {
    while (!ends.load()) std::this_thread::sleep_for(milliseconds(1));
  });
  ASSERT_TRUE(write(other, 1));
  gpu().synchronize(other);
  EXPECT_TRUE(is_written(1));
  ends.store(true);
  gpu().synchronize(queue);
}

TEST_F(SimulatedGpuTest, each_call_fails_once_where_a_test_asks_for_it) {
  open({});
  const Mark mark = gpu().make_mark().value();
  const std::vector<std::function<bool()>> calls = {[&] { return gpu().make_queue().has_value(); },
                                                    [&] { return gpu().make_mark().has_value(); },
                                                    [&] { return gpu().is_capturing(queue).has_value(); },
                                                    [&] { return gpu().is_idle(queue).has_value(); },
                                                    [&] { return copy(queue).has_value(); },
                                                    [&] { return write(queue, 2).has_value(); },
                                                    [&] { return gpu().record(queue, mark).has_value(); },
                                                    [&] { return gpu().await(queue, mark).has_value(); },
                                                    [&] { return gpu().pin({pages->host(), 0}).has_value(); }};
  for (size_t i = 0; i < calls.size(); ++i) {
    gpu().fail_call_after(1);
    EXPECT_FALSE(calls[i]()) << "call " << i;
    EXPECT_EQ(calls[i](), i + 1 < calls.size()) << "call " << i;
  }
}

TEST_F(SimulatedGpuTest, one_that_stops_does_nothing_more_and_says_nothing) {
  open({.stops_at_operation = 3});
  for (size_t entry = 1; entry <= 4; ++entry) ASSERT_TRUE(write(queue, entry));
  std::this_thread::sleep_for(milliseconds(20));
  EXPECT_TRUE(is_written(2));
  EXPECT_FALSE(is_written(3));
  EXPECT_FALSE(gpu().is_idle(queue).value());
  gpu().go_on();
  gpu().synchronize(queue);
  EXPECT_TRUE(is_written(4));
}

TEST_F(SimulatedGpuTest, one_that_breaks_does_nothing_more_and_every_call_says_so) {
  open({.breaks_at_operation = 3});
  for (size_t entry = 1; entry <= 2; ++entry) ASSERT_TRUE(write(queue, entry));
  gpu().synchronize(queue);
  (void)write(queue, 3);
  gpu().synchronize(queue);
  EXPECT_TRUE(is_written(2));
  EXPECT_FALSE(is_written(3));
  expect_refused(copy(other), "broken");
  EXPECT_FALSE(gpu().is_idle(queue));
  EXPECT_FALSE(gpu().make_mark());
}

TEST_F(SimulatedGpuTest, an_enqueue_while_a_queue_records_a_graph_is_refused) {
  open({});
  gpu().begin_capture(queue);
  expect_refused(copy(queue), "records a graph");
  gpu().end_capture(queue);
  EXPECT_TRUE(copy(queue));
}

TEST_F(SimulatedGpuTest, the_hosts_address_of_pinned_memory_is_refused) {
  open({});
  EXPECT_NE(pages->device(), pages->host());
  expect_refused(gpu().copy(queue, {memory, pages->host(), 8}), "the host's address of pinned memory");
  const WordOperation word{Kind::write, pages->host(), 1};
  expect_refused(gpu().words(queue, {&word, 1}), "not an address of the GPU's in pinned memory");
}

TEST_F(SimulatedGpuTest, memory_that_is_not_whole_pages_cannot_be_pinned) {
  open({});
  std::vector<std::byte> some(10000);
  const auto pinned = gpu().pin(some);
  ASSERT_FALSE(pinned);
  EXPECT_NE(pinned.error().message.find("whole pages"), std::string::npos);
}

TEST_F(SimulatedGpuTest, a_queue_or_mark_that_was_dropped_is_refused) {
  open({});
  const Mark mark = gpu().make_mark().value();
  gpu().drop(mark);
  gpu().drop(other);
  expect_refused(copy(other), "has no more");
  expect_refused(gpu().record(queue, mark), "has no more");
  EXPECT_FALSE(gpu().owns(other).value());
}

// Looks on by a second mapping, since to look early is a race.
TEST_F(SimulatedGpuTest, copies_land_in_any_order) {
  open({.delay_us = 0});
  constexpr size_t kBytes = 4096;
  const Descriptor file(::memfd_create("landing", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(file.get(), kBytes), 0);
  const auto map = [&] {
    return static_cast<std::byte*>(::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0));
  };
  std::byte* const target = map();
  std::byte* const window = map();
  const auto pinned = gpu().pin({target, kBytes}).value();
  std::byte* const input = gpu().allocate(MemoryPlace::this_device, kBytes);
  gpu().write(input, std::vector<std::byte>(kBytes, std::byte{1}));
  const auto byte = [&](size_t at) { return __atomic_load_n(reinterpret_cast<unsigned char*>(window + at), __ATOMIC_RELAXED); };
  bool last_was_first = false;
  for (int attempt = 0; attempt < 2000 && !last_was_first; ++attempt) {
    std::fill_n(window, kBytes, std::byte{0});
    ASSERT_TRUE(gpu().copy(queue, {pinned->device_address(target), input, kBytes}));
    while (!gpu().is_idle(queue).value()) last_was_first |= byte(kBytes - 1) == 1 && byte(0) != 1;
  }
  EXPECT_TRUE(last_was_first);
}

TEST_F(SimulatedGpuTest, it_counts_what_was_outstanding_on_a_queue_at_once) {
  open({});
  hold(queue);
  for (int entry = 0; entry < 20; ++entry) ASSERT_TRUE(copy(queue));
  release();
  gpu().synchronize(queue);
  ASSERT_TRUE(copy(queue));
  EXPECT_EQ(gpu().most_outstanding(queue), 21u);
}

TEST_F(SimulatedGpuTest, a_users_kernel_runs_on_its_stream) {
  open({});
  const Queue stream = gpu().make_user_queue();
  std::vector<std::byte> came(4);
  gpu().launch(stream, [this] { *real(memory + 2) = std::byte{42}; });
  gpu().synchronize(stream);
  gpu().read(memory, came);
  EXPECT_EQ(came[2], std::byte{42});
}

TEST_F(SimulatedGpuTest, another_gpus_memory_is_told_apart) {
  open({});
  SimulatedGpu second({.ordinal = 1});
  EXPECT_EQ(gpu().place_of(second.allocate(MemoryPlace::this_device, 8)), MemoryPlace::other_device);
  EXPECT_FALSE(gpu().owns(second.make_user_queue()).value());
}

TEST(InstalledGpus, are_what_open_device_finds) {
  EXPECT_FALSE(open_device(0));
  install(std::make_shared<SimulatedGpu>(GpuOptions{.ordinal = 1}));
  EXPECT_EQ(open_device(0).error().code, fcclInvalidArgument);
  EXPECT_EQ(open_device(1).value()->limits().ordinal, 1);
  EXPECT_EQ(current_device(), -1);
  set_current_device(1);
  EXPECT_EQ(current_device(), 1);
  set_current_device(-1);
  uninstall_all();
  EXPECT_FALSE(open_device(1));
}

}  // namespace

}  // namespace fccl::core::simulated
