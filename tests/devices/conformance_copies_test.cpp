// The conformance suite of GPUs: copies, and whose memory is where.
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>

#include "devices/conformance.h"

namespace fccl::core {

namespace {

constexpr size_t kOdd = 4099;

TEST_P(DeviceConformance, a_copy_brings_every_byte_and_no_other) {
  const Queue queue = make_queue();
  std::byte* const input = allocate(MemoryPlace::this_device, kOdd);
  std::byte* const output = allocate(MemoryPlace::this_device, kOdd + 2);
  for (int iteration = 0; iteration < 4; ++iteration) {
    user().write(input, values(kOdd, iteration));
    enqueue(queue, {output + 1, input, kOdd});
    ASSERT_TRUE(becomes_idle(queue));
    const std::vector<std::byte> came = read(output, kOdd + 2);
    EXPECT_TRUE(std::ranges::equal(std::span(came).subspan(1, kOdd), values(kOdd, iteration)));
    EXPECT_EQ(came.front(), kPoison);
    EXPECT_EQ(came.back(), kPoison);
  }
}

TEST_P(DeviceConformance, a_copy_goes_between_all_places_that_are_served) {
  const Queue queue = make_queue();
  PinnedPages pages(gpu(), 1);
  int iteration = 0;
  for (const MemoryPlace from : {MemoryPlace::this_device, MemoryPlace::managed, MemoryPlace::pinned_host}) {
    for (const MemoryPlace to : {MemoryPlace::this_device, MemoryPlace::managed, MemoryPlace::pinned_host}) {
      std::byte* const input = allocate(from, 1000);
      std::byte* const output = allocate(to, 1000);
      user().write(input, values(1000, ++iteration));
      enqueue(queue, {pages.device(8), input, 1000});
      enqueue(queue, {output, pages.device(8), 1000});
      ASSERT_TRUE(becomes_idle(queue));
      EXPECT_EQ(read(output, 1000), values(1000, iteration));
      EXPECT_TRUE(std::ranges::equal(std::span(pages.host(8), 1000), values(1000, iteration)));
    }
  }
}

TEST_P(DeviceConformance, rows_go_by_their_pitches_and_touch_nothing_between) {
  constexpr size_t kRows = 7, kBytes = 101, kWide = 160, kNarrow = 101;
  const Queue queue = make_queue();
  std::byte* const input = allocate(MemoryPlace::this_device, kRows * kWide);
  std::byte* const output = allocate(MemoryPlace::this_device, kRows * kWide);
  PinnedPages pages(gpu(), 1);
  const std::vector<std::byte> sent = values(kRows * kWide, 3);
  user().write(input, sent);
  enqueue(queue, {pages.device(), input, kBytes, kRows, kNarrow, kWide});
  enqueue(queue, {output, pages.device(), kBytes, kRows, kWide, kNarrow});
  ASSERT_TRUE(becomes_idle(queue));
  const std::vector<std::byte> came = read(output, kRows * kWide);
  for (size_t i = 0; i < came.size(); ++i) {
    ASSERT_EQ(came[i], i % kWide < kBytes ? sent[i] : kPoison) << "byte " << i;
  }
}

TEST_P(DeviceConformance, a_copy_of_nothing_is_done_at_once) {
  const Queue queue = make_queue();
  std::byte* const memory = allocate(MemoryPlace::this_device, 64);
  enqueue(queue, {memory, memory + 32, 0});
  enqueue(queue, {memory, memory + 32, 8, 0, 8, 8});
  ASSERT_TRUE(becomes_idle(queue));
  EXPECT_EQ(read(memory, 64), std::vector<std::byte>(64, kPoison));
}

TEST_P(DeviceConformance, strange_copies_beyond_their_memory_are_refused) {
  const Queue queue = make_queue();
  std::byte* const memory = allocate(MemoryPlace::this_device, size_t{1} << 22);
  std::byte* const small = allocate(MemoryPlace::this_device, size_t{1} << 21);
  expect_refused_or_accepted(gpu().copy(queue, {small, memory, size_t{1} << 22}));
}

TEST_P(DeviceConformance, rows_with_a_larger_pitch_than_the_limit_are_refused) {
  const Queue queue = make_queue();
  std::byte* const memory = allocate(MemoryPlace::this_device, 64);
  const size_t pitch = gpu().limits().most_pitch + 1;
  expect_refused(gpu().copy(queue, {memory, memory + 32, 8, 2, pitch, 8}));
}

TEST_P(DeviceConformance, a_place_is_told_by_any_byte_of_it) {
  PinnedPages pages(gpu(), 1);
  const std::vector<std::byte> pageable(100);
  for (const MemoryPlace place : {MemoryPlace::this_device, MemoryPlace::managed, MemoryPlace::pinned_host}) {
    const std::byte* const memory = allocate(place, 100);
    EXPECT_EQ(gpu().place_of(memory), place);
    EXPECT_EQ(gpu().place_of(memory + 99), place);
  }
  EXPECT_EQ(gpu().place_of(pages.host(100)), MemoryPlace::pinned_host);
  EXPECT_EQ(gpu().place_of(pageable.data()), MemoryPlace::pageable_host);
}

TEST_P(DeviceConformance, pinned_memory_is_one_run_for_the_gpu_too) {
  PinnedPages pages(gpu(), 3);
  EXPECT_EQ(pages.device(pages.bytes() - 1), pages.device() + pages.bytes() - 1);
}

TEST_P(DeviceConformance, a_mapping_cannot_be_pinned_twice_but_again_later) {
  auto pages = std::make_unique<PinnedPages>(gpu(), 2);
  const auto twice = gpu().pin({pages->host(PinnedPages::page()), PinnedPages::page()});
  ASSERT_FALSE(twice);
  EXPECT_FALSE(twice.error().message.empty());
  void* const where = pages->host();
  pages.reset();
  void* const memory = ::mmap(where, 2 * PinnedPages::page(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT_TRUE(gpu().pin({static_cast<std::byte*>(memory), 2 * PinnedPages::page()}));
  ::munmap(memory, 2 * PinnedPages::page());
}

TEST_P(DeviceConformance, a_peer_can_read_pinned_memory_by_cross_memory_attach) {
  PinnedPages pages(gpu(), 1);
  const Queue queue = make_queue();
  std::byte* const input = allocate(MemoryPlace::this_device, 500);
  user().write(input, values(500, 9));
  enqueue(queue, {pages.device(), input, 500});
  ASSERT_TRUE(becomes_idle(queue));
  std::vector<std::byte> came(500);
  const iovec local{came.data(), came.size()}, remote{pages.host(), came.size()};
  ASSERT_EQ(::process_vm_readv(::getpid(), &local, 1, &remote, 1, 0), 500);
  EXPECT_EQ(came, values(500, 9));
}

}  // namespace

}  // namespace fccl::core
