// SimulatedGpu: that it is worse than a GPU in every way that it promises.
#include "devices/simulated_gpu.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "device/words.h"

namespace fccl::simulated {

namespace {

using Kind = WordOperation::Kind;
constexpr size_t kPage = 4096;

std::byte value_of(size_t index, int iteration) { return static_cast<std::byte>((index * 7 + 31 * iteration + 1) % 251); }

std::vector<std::byte> values(size_t bytes, int iteration) {
  std::vector<std::byte> all(bytes);
  for (size_t i = 0; i < bytes; ++i) all[i] = value_of(i, iteration);
  return all;
}

// The library's own mapping, pinned.
class Pinned {
 public:
  Pinned(Device& device, size_t bytes)
      : memory_(static_cast<std::byte*>(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))),
        bytes_(bytes),
        pinned_(*device.pin({memory_, bytes})) {}
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;
  ~Pinned() {
    pinned_.reset();
    ::munmap(memory_, bytes_);
  }
  std::byte* host(size_t at = 0) const { return memory_ + at; }
  std::byte* device(size_t at = 0) const { return pinned_->device_address(memory_ + at); }
  DeviceWord& word(size_t at = 0) const { return *reinterpret_cast<DeviceWord*>(memory_ + at); }

 private:
  std::byte* memory_;
  size_t bytes_;
  std::unique_ptr<PinnedMemory> pinned_;
};

void wait_for(const DeviceWord& word, uint64_t target) {
  while (!has_come(word, target)) std::this_thread::sleep_for(std::chrono::microseconds(50));
}

void ask(const Result<void>& result) { ASSERT_TRUE(result) << result.error().message; }

class SimulatedGpuTest : public testing::Test {
 protected:
  SimulatedGpu gpu;
};

TEST_F(SimulatedGpuTest, rows_go_out_through_pinned_memory_and_come_back) {
  const Device::Use use(gpu);
  Pinned pinned(gpu, 4 * kPage);
  std::byte* const input = gpu.allocate(Place::this_device, 1000);
  std::byte* const output = gpu.allocate(Place::this_device, 1000);
  const Queue queue = *gpu.make_queue();
  for (int iteration = 0; iteration < 20; ++iteration) {
    gpu.write(input, values(1000, iteration));
    const uint64_t number = static_cast<uint64_t>(iteration) + 1;
    const WordOperation arrived{Kind::write, pinned.device(0), number}, go{Kind::wait_for, pinned.device(64), number};
    ask(gpu.copy(queue, {pinned.device(kPage), input, 100, 10, 128, 100}));
    ask(gpu.words(queue, {{arrived, go}}));
    ask(gpu.copy(queue, {output, pinned.device(kPage), 100, 10, 100, 128}));
    ask(gpu.words(queue, std::span(&arrived, 0)));
    wait_for(pinned.word(0), number);
    EXPECT_EQ(*pinned.host(kPage + 128), value_of(100, iteration));
    EXPECT_FALSE(*gpu.is_idle(queue));
    for (size_t row = 0; row < 10; ++row) *pinned.host(kPage + row * 128) = std::byte{0xff};
    release_to_device(pinned.word(64), number);
    while (!*gpu.is_idle(queue)) std::this_thread::yield();
    std::vector<std::byte> came(1000), expected = values(1000, iteration);
    for (size_t row = 0; row < 10; ++row) expected[row * 100] = std::byte{0xff};
    gpu.read(output, came);
    EXPECT_EQ(came, expected);
  }
}

}  // namespace

}  // namespace fccl::simulated
