// Shadow: that nobody sees what a queue has written before he may.
#include "devices/shadow.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "devices/simulated_gpu_fixture.h"
#include "os/descriptor.h"

namespace fccl::core::simulated {

namespace {

using Kind = WordOperation::Kind;
using std::chrono::milliseconds;

// Looks on by a second mapping, since to look early is a race; what it looks for is in the last 500 bytes of its two pages.
class SimulatedShadowTest : public SimulatedGpuTest {
 public:
  ~SimulatedShadowTest() override {
    if (pages == nullptr) return;
    for (const size_t word : {0, 64}) release_to_device(pages->word(word), kFarAhead);
    peer_pin.reset();
  }

 protected:
  static constexpr size_t kPages = 8192, kBytes = 500;

  void look(GpuOptions options) {
    open(options);
    const Descriptor file(::memfd_create("shadow", MFD_CLOEXEC));
    ASSERT_EQ(::ftruncate(file.get(), kPages), 0);
    const auto map = [&] {
      return static_cast<std::byte*>(::mmap(nullptr, kPages, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0));
    };
    target = map();
    window = map();
    peer_pin = gpu().pin({target, kPages}).value();
    gpu().write(memory, std::vector<std::byte>(kBytes, kSent));
    hold(queue);
    ASSERT_TRUE(gpu().copy(queue, out()));
  }
  Copy out() { return {peer_pin->device_address(target + kPages - kBytes), memory, kBytes}; }
  // Lets the queue go on as far as its next wait.
  void let_copy() {
    const WordOperation wait{Kind::wait_for, pages->device(64), 1};
    ASSERT_TRUE(gpu().words(queue, {&wait, 1}));
    release();
    std::this_thread::sleep_for(milliseconds(30));
  }
  void go_on() {
    release_to_device(pages->word(64), 1);
    gpu().synchronize(queue);
  }
  bool is_seen(size_t at) {
    const auto* const byte = reinterpret_cast<unsigned char*>(window + kPages - kBytes + at);
    return static_cast<std::byte>(__atomic_load_n(byte, __ATOMIC_RELAXED)) == kSent;
  }
  bool is_seen() { return is_seen(0) || is_seen(kBytes / 2) || is_seen(kBytes - 1); }

  static constexpr std::byte kSent{0x33};
  std::byte *target = nullptr, *window = nullptr;
  std::unique_ptr<PinnedMemory> peer_pin;
};

TEST_F(SimulatedShadowTest, nobody_sees_what_was_copied_while_its_queue_waits) {
  for (const bool keeps_back : {true, false}) {
    look({.keeps_back = keeps_back});
    let_copy();
    EXPECT_EQ(is_seen(), !keeps_back);
    go_on();
    EXPECT_TRUE(is_seen());
    peer_pin.reset();
    close();
  }
}

TEST_F(SimulatedShadowTest, who_sees_a_word_sees_what_was_copied_before) {
  look({});
  ASSERT_TRUE(write(queue, 1));
  let_copy();
  EXPECT_TRUE(is_written(1));
  EXPECT_TRUE(is_seen());
  go_on();
}

TEST_F(SimulatedShadowTest, who_has_awaited_a_mark_sees_what_was_copied_before) {
  look({.set_up_waits = false});
  const Mark mark = gpu().make_user_mark();
  ASSERT_TRUE(gpu().record(queue, mark));
  ASSERT_TRUE(gpu().await(other, mark));
  let_copy();
  gpu().synchronize(other);
  EXPECT_TRUE(is_seen());
  go_on();
}

TEST_F(SimulatedShadowTest, a_queue_sees_its_own_copies) {
  look({});
  ASSERT_TRUE(gpu().copy(queue, {memory + kBytes, out().to, kBytes}));
  let_copy();
  go_on();
  std::vector<std::byte> came(kBytes);
  gpu().read(memory + kBytes, came);
  EXPECT_EQ(came, std::vector<std::byte>(kBytes, kSent));
}

TEST_F(SimulatedShadowTest, of_two_copies_to_one_place_the_second_stays) {
  look({});
  ASSERT_TRUE(gpu().copy(queue, {out().to, memory + kBytes, kBytes}));
  ASSERT_TRUE(gpu().copy(queue, out()));
  release();
  gpu().synchronize(queue);
  for (size_t at = 0; at < kBytes; ++at) ASSERT_TRUE(is_seen(at)) << at;
}

TEST_F(SimulatedShadowTest, what_a_kernel_stores_is_kept_back_too) {
  look({});
  release();
  gpu().synchronize(queue);
  std::fill_n(window, kPages, std::byte{0});
  pages->word(0).store(0);
  const auto kernel = [to = out().to] { store(to, std::vector<std::byte>(kBytes, kSent)); };
  gpu().load(kernel);
  hold(queue);
  gpu().launch(queue, kernel);
  let_copy();
  EXPECT_FALSE(is_seen());
  go_on();
  EXPECT_TRUE(is_seen());
}

}  // namespace

}  // namespace fccl::core::simulated
