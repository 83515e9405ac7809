// The conformance suite of GPUs: what its tests have in common.
#include "devices/conformance.h"

#include <chrono>
#include <thread>

namespace fccl::core {

namespace {

constexpr auto kPatience = std::chrono::seconds(60);  // a busy machine gives each operation its turn late

bool happens(const std::function<bool()>& what) {
  const auto begin = std::chrono::steady_clock::now();
  while (!what()) {
    if (std::chrono::steady_clock::now() - begin > kPatience) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  return true;
}

}  // namespace

void DeviceConformance::SetUp() {
  auto opened = GetParam().open();
  if (!opened) GTEST_SKIP() << opened.error().message;
  user_ = *std::move(opened);
  use_ = std::make_unique<Device::Use>(gpu());
  ASSERT_TRUE(use_->entered()) << use_->entered().error().message;
  if (!gpu().limits().waits_for_words) GTEST_SKIP() << gpu().limits().name << " has no stream memory operations";
  words = std::make_unique<PinnedPages>(gpu(), 1);
}

void DeviceConformance::TearDown() {
  if (user_ == nullptr) return;
  for (size_t which = 0; words != nullptr && which < PinnedPages::page() / kLine; ++which) {
    release_to_device(word(which), word(which).load() + kFarAhead);
  }
  for (const Queue queue : queues_) EXPECT_TRUE(becomes_idle(queue)) << "a queue never came to its end";
  for (const Queue queue : queues_) gpu().drop(queue);
  for (const Mark mark : marks_) gpu().drop(mark);
  for (const Allocation& allocation : allocations_) user_->free(allocation.memory, allocation.place);
  words.reset();
  use_.reset();
}

std::vector<std::byte> DeviceConformance::values(size_t bytes, int iteration) {
  std::vector<std::byte> all(bytes);
  for (size_t i = 0; i < bytes; ++i)
    all[i] = static_cast<std::byte>((i * 7 + i / 211 + static_cast<size_t>(iteration) * 31) % 211);
  return all;
}

std::byte* DeviceConformance::allocate(MemoryPlace place, size_t bytes) {
  std::byte* const made = user_->allocate(place, bytes);
  allocations_.push_back({made, place});
  user_->write(made, std::vector<std::byte>(bytes, kPoison));
  return made;
}

std::vector<std::byte> DeviceConformance::read(const std::byte* from, size_t bytes) {
  std::vector<std::byte> came(bytes);
  user_->read(from, came);
  return came;
}

void DeviceConformance::write_by_gpu(std::byte* to, const std::vector<std::byte>& bytes) {
  std::byte* const input = allocate(MemoryPlace::this_device, bytes.size());
  user_->write(input, bytes);
  const Queue queue = make_queue();
  enqueue(queue, {to, input, bytes.size()});
  ASSERT_TRUE(becomes_idle(queue));
}

std::vector<std::byte> DeviceConformance::read_by_gpu(const std::byte* from, size_t bytes) {
  std::byte* const output = allocate(MemoryPlace::this_device, bytes);
  const Queue queue = make_queue();
  enqueue(queue, {output, from, bytes});
  EXPECT_TRUE(becomes_idle(queue));
  return read(output, bytes);
}

Queue DeviceConformance::make_queue() {
  queues_.push_back(gpu().make_queue().value());
  return queues_.back();
}

Mark DeviceConformance::make_mark() {
  marks_.push_back(gpu().make_mark().value());
  return marks_.back();
}

void DeviceConformance::enqueue(Queue queue, std::initializer_list<WordOperation> operations) {
  const auto enqueued = gpu().words(queue, {operations.begin(), operations.size()});
  ASSERT_TRUE(enqueued) << enqueued.error().message;
}

void DeviceConformance::enqueue(Queue queue, const Copy& copy) {
  const auto enqueued = gpu().copy(queue, copy);
  ASSERT_TRUE(enqueued) << enqueued.error().message;
}

bool DeviceConformance::comes(size_t which, uint64_t value) {
  return happens([&] { return has_come(word(which), value); });
}

bool DeviceConformance::becomes_idle(Queue queue) {
  return happens([&] { return gpu().is_idle(queue).value_or(false); });
}

void DeviceConformance::let_it_happen() { std::this_thread::sleep_for(std::chrono::milliseconds(20)); }

void DeviceConformance::expect_refused_or_accepted(const Result<void>& result) {
  if (result && GetParam().may_accept_strange_memory) GTEST_SKIP() << "this GPU accepts it";
  expect_refused(result);
}

void DeviceConformance::expect_refused(const Result<void>& result) {
  ASSERT_FALSE(result) << "it was taken";
  EXPECT_GT(result.error().message.size(), 20u) << result.error().message;
  const Queue queue = make_queue();
  enqueue(queue, {write(63, 1)});
  EXPECT_TRUE(comes(63, 1)) << "the GPU did not go on after: " << result.error().message;
  ASSERT_TRUE(becomes_idle(queue));
  release_to_device(word(63), 0);
}

}  // namespace fccl::core
