// The conformance suite of GPUs: queues, words and marks.
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "devices/conformance.h"

namespace fccl::core {

namespace {

TEST_P(DeviceConformance, limits_are_such_that_one_can_work_with_them) {
  const DeviceLimits& limits = gpu().limits();
  EXPECT_FALSE(limits.name.empty());
  EXPECT_FALSE(limits.bus_id.empty());
  EXPECT_FALSE(limits.identity.empty());
  EXPECT_GE(limits.words_per_call, 3u);
  EXPECT_GE(limits.queue_entries, 16u);
  EXPECT_GE(limits.most_pitch, size_t{1} << 20);
}

TEST_P(DeviceConformance, a_queue_waits_at_a_word_until_it_has_come) {
  const Queue queue = make_queue();
  enqueue(queue, {wait_for(0, 5), write(1, 7)});
  for (const uint64_t early : {1, 4}) {
    release_to_device(word(0), early);
    let_it_happen();
    EXPECT_EQ(word(1).load(), 0u) << "it went on at " << early;
    EXPECT_FALSE(gpu().is_idle(queue).value());
  }
  release_to_device(word(0), 5);
  EXPECT_TRUE(comes(1, 7));
  EXPECT_TRUE(becomes_idle(queue));
}

TEST_P(DeviceConformance, words_wrap) {
  const Queue queue = make_queue();
  word(0).store(UINT64_MAX - 1);
  enqueue(queue, {wait_for(0, 2), write(1, 1)});
  let_it_happen();
  EXPECT_EQ(word(1).load(), 0u);
  release_to_device(word(0), 3);
  EXPECT_TRUE(comes(1, 1));
}

TEST_P(DeviceConformance, far_ahead_releases_a_queue_whatever_it_waits_for) {
  const Queue queue = make_queue();
  enqueue(queue, {wait_for(0, 1), wait_for(0, 1000000), wait_for(0, uint64_t{1} << 61), write(1, 1)});
  release_to_device(word(0), kFarAhead);
  EXPECT_TRUE(comes(1, 1));
}

TEST_P(DeviceConformance, who_sees_the_word_sees_what_came_before_it_on_the_queue) {
  constexpr size_t kBytes = 20000;
  const Queue queue = make_queue();
  PinnedPages pages(gpu(), kBytes / PinnedPages::page() + 1);
  std::byte* const input = allocate(MemoryPlace::this_device, kBytes);
  for (int iteration = 1; iteration <= 20; ++iteration) {
    const std::vector<std::byte> sent = values(kBytes, iteration);
    user().write(input, sent);
    enqueue(queue, {pages.device(), input, kBytes});
    enqueue(queue, {write(0, static_cast<uint64_t>(iteration)), wait_for(1, static_cast<uint64_t>(iteration))});
    ASSERT_TRUE(comes(0, static_cast<uint64_t>(iteration)));
    EXPECT_TRUE(std::equal(sent.begin(), sent.end(), pages.host())) << "in iteration " << iteration;
    std::fill_n(pages.host(), kBytes, kPoison);
    release_to_device(word(1), static_cast<uint64_t>(iteration));
    ASSERT_TRUE(becomes_idle(queue));
  }
}

TEST_P(DeviceConformance, the_queue_sees_what_the_host_wrote_before_it_released_the_word) {
  constexpr size_t kBytes = 20000;
  const Queue queue = make_queue();
  PinnedPages pages(gpu(), kBytes / PinnedPages::page() + 1);
  std::byte* const output = allocate(MemoryPlace::this_device, kBytes);
  for (int iteration = 1; iteration <= 20; ++iteration) {
    const std::vector<std::byte> sent = values(kBytes, iteration);
    enqueue(queue, {wait_for(0, static_cast<uint64_t>(iteration))});
    enqueue(queue, {output, pages.device(), kBytes});
    std::copy(sent.begin(), sent.end(), pages.host());
    release_to_device(word(0), static_cast<uint64_t>(iteration));
    ASSERT_TRUE(becomes_idle(queue));
    EXPECT_EQ(read(output, kBytes), sent) << "in iteration " << iteration;
  }
}

TEST_P(DeviceConformance, as_many_words_as_the_limit_says_are_done_in_their_order) {
  const Queue queue = make_queue();
  std::vector<WordOperation> operations;
  const size_t count = gpu().limits().words_per_call;
  for (size_t i = 0; i + 1 < count; ++i) operations.push_back(write(i % 2, i + 1));
  operations.push_back(write(2, 1));
  ASSERT_TRUE(gpu().words(queue, operations));
  ASSERT_TRUE(comes(2, 1));
  const uint64_t last = count - 1, before = count - 2;  // the words that were written last
  EXPECT_EQ(word((last - 1) % 2).load(), last);
  EXPECT_EQ(word((before - 1) % 2).load(), before);
}

TEST_P(DeviceConformance, more_words_than_the_limit_are_refused) {
  const Queue queue = make_queue();
  const std::vector<WordOperation> operations(gpu().limits().words_per_call + 1, write(0, 1));
  expect_refused(gpu().words(queue, operations));
  EXPECT_EQ(word(0).load(), 0u);
}

TEST_P(DeviceConformance, a_word_that_is_not_aligned_is_refused) {
  const Queue queue = make_queue();
  const WordOperation operation{Kind::write, words->device(4), 1};
  expect_refused(gpu().words(queue, {&operation, 1}));
}

TEST_P(DeviceConformance, strange_words_outside_of_pinned_memory_are_refused) {
  const Queue queue = make_queue();
  alignas(64) static std::array<std::byte, 64> pageable{};  // which outlives the queue, should it write there
  const WordOperation operation{Kind::write, pageable.data(), 1};
  expect_refused_or_accepted(gpu().words(queue, {&operation, 1}));
}

TEST_P(DeviceConformance, a_queue_takes_as_many_entries_as_its_limit_while_it_waits) {
  const Queue queue = make_queue();
  std::byte* const input = allocate(MemoryPlace::this_device, 64);
  std::byte* const output = allocate(MemoryPlace::this_device, 64);
  std::atomic<bool> enqueued{false}, too_late{false};
  std::thread guard([&] {
    for (int ms = 0; ms < 10000 && !enqueued.load(); ++ms) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    too_late.store(!enqueued.load());
    release_to_device(word(0), 1);
  });
  enqueue(queue, {wait_for(0, 1)});
  for (size_t entry = 1; entry < gpu().limits().queue_entries; ++entry) enqueue(queue, {output, input, 64});
  enqueued.store(true);
  guard.join();
  EXPECT_FALSE(too_late.load()) << "it blocked until the queue was released";
  EXPECT_TRUE(becomes_idle(queue));
}

TEST_P(DeviceConformance, an_awaited_mark_holds_a_queue_until_what_was_recorded_is_done) {
  const Queue first = make_queue(), second = make_queue();
  const Mark mark = make_mark();
  std::byte* const input = allocate(MemoryPlace::this_device, 5000);
  std::byte* const middle = allocate(MemoryPlace::this_device, 5000);
  std::byte* const output = allocate(MemoryPlace::this_device, 5000);
  user().write(input, values(5000, 1));
  enqueue(first, {wait_for(0, 1)});
  enqueue(first, {middle, input, 5000});
  ASSERT_TRUE(gpu().record(first, mark));
  ASSERT_TRUE(gpu().await(second, mark));
  enqueue(second, {output, middle, 5000});
  enqueue(second, {write(1, 1)});
  let_it_happen();
  EXPECT_EQ(word(1).load(), 0u);
  release_to_device(word(0), 1);
  ASSERT_TRUE(comes(1, 1));
  ASSERT_TRUE(becomes_idle(second));
  EXPECT_EQ(read(output, 5000), values(5000, 1));
}

TEST_P(DeviceConformance, a_mark_that_was_never_recorded_holds_nobody) {
  const Queue queue = make_queue();
  ASSERT_TRUE(gpu().await(queue, make_mark()));
  enqueue(queue, {write(0, 1)});
  EXPECT_TRUE(comes(0, 1));
}

TEST_P(DeviceConformance, what_is_recorded_later_does_not_hold_who_awaited_before) {
  const Queue first = make_queue(), second = make_queue();
  const Mark mark = make_mark();
  ASSERT_TRUE(gpu().record(first, mark));
  ASSERT_TRUE(gpu().await(second, mark));
  enqueue(second, {write(1, 1)});
  enqueue(first, {wait_for(0, 1)});
  ASSERT_TRUE(gpu().record(first, mark));
  EXPECT_TRUE(comes(1, 1));
}

TEST_P(DeviceConformance, a_queue_that_waits_holds_up_no_other) {
  if (!GetParam().queues_are_apart) GTEST_SKIP() << "all queues of this GPU are one";
  const Queue first = make_queue(), second = make_queue();
  enqueue(first, {wait_for(0, 1)});
  enqueue(second, {write(1, 1)});
  EXPECT_TRUE(comes(1, 1));
}

TEST_P(DeviceConformance, a_program_whose_every_wait_is_satisfied_by_what_was_enqueued_before_it_ends) {
  const Queue first = make_queue(), second = make_queue();
  for (uint64_t round = 1; round <= 20; ++round) {
    enqueue(first, {write(0, round)});
    enqueue(second, {wait_for(0, round), write(1, round)});
    enqueue(first, {wait_for(1, round)});
  }
  EXPECT_TRUE(comes(1, 20));
  EXPECT_TRUE(becomes_idle(first));
}

TEST_P(DeviceConformance, a_queue_that_is_dropped_does_what_was_on_it) {
  const Queue queue = gpu().make_queue().value();
  std::byte* const input = allocate(MemoryPlace::this_device, 5000);
  std::byte* const output = allocate(MemoryPlace::this_device, 5000);
  user().write(input, values(5000, 2));
  enqueue(queue, {output, input, 5000});
  enqueue(queue, {write(0, 1)});
  gpu().drop(queue);
  ASSERT_TRUE(comes(0, 1));
  EXPECT_EQ(read(output, 5000), values(5000, 2));
}

TEST_P(DeviceConformance, the_default_queues_and_a_users_stream_are_served) {
  const Queue stream = user().make_stream();
  const std::vector<Queue> queues = {Queue{nullptr}, Queue{reinterpret_cast<void*>(1)}, Queue{reinterpret_cast<void*>(2)},
                                     stream};
  for (size_t i = 0; i < queues.size(); ++i) {
    EXPECT_TRUE(gpu().owns(queues[i]).value());
    EXPECT_FALSE(gpu().is_capturing(queues[i]).value());
    enqueue(queues[i], {write(i, 1)});
    EXPECT_TRUE(comes(i, 1));
    EXPECT_TRUE(becomes_idle(queues[i]));
  }
  user().drop_stream(stream);
}

TEST_P(DeviceConformance, a_stream_that_records_a_graph_says_so) {
  const Queue stream = user().make_stream();
  user().begin_capture(stream);
  EXPECT_TRUE(gpu().is_capturing(stream).value());
  user().end_capture(stream);
  EXPECT_FALSE(gpu().is_capturing(stream).value());
  user().drop_stream(stream);
}

TEST_P(DeviceConformance, strange_threads_without_a_use_are_refused) {
  const Queue queue = make_queue();
  std::byte* const memory = allocate(MemoryPlace::this_device, 64);
  Result<void> result;
  std::thread([&] { result = gpu().copy(queue, {memory, memory + 32, 32}); }).join();
  expect_refused_or_accepted(result);
}

TEST_P(DeviceConformance, uses_nest_and_give_back_what_was_current) {
  const Queue queue = make_queue();
  {
    const Device::Use inner(gpu());
    ASSERT_TRUE(inner.entered());
  }
  enqueue(queue, {write(0, 1)});
  EXPECT_TRUE(comes(0, 1));
}

}  // namespace

}  // namespace fccl::core
