// The conformance suite of GPUs: what every Device must do, sentence by sentence of device/device.h; a test per sentence.
//
// A test program links fccl_device_conformance and says how its GPUs are opened:
//   INSTANTIATE_TEST_SUITE_P(Mine, DeviceConformance, testing::Values(GpuFactory{"mine", open_mine}), name_of_factory);
// and the same of DeviceSums (devices/conformance_sums.h)
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <initializer_list>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "devices/gpu_user.h"
#include "devices/pinned_pages.h"

namespace fccl::core {

// How to open a GPU, whose misuse must be an error. Its own errors are the reasons that a skipped test prints.
struct GpuFactory {
  std::string name;
  std::function<Result<std::unique_ptr<GpuUser>>()> open;
  // True if a queue that waits holds up no other.
  bool queues_are_apart = true;
  // True if it may do what the library never asks for: a GPU that reads all of the host's memory may take a word of it.
  bool may_accept_strange_memory = false;
};

inline std::string name_of_factory(const testing::TestParamInfo<GpuFactory>& info) { return info.param.name; }
inline void PrintTo(const GpuFactory& factory, std::ostream* out) { *out << factory.name; }

// Each test has the GPU current in its thread, a page of words at `words`, and a queue.
class DeviceConformance : public testing::TestWithParam<GpuFactory> {
 protected:
  using Kind = WordOperation::Kind;

  void SetUp() override;
  // Releases every queue that still waits for a word of `words`, and drops what was made.
  void TearDown() override;

  Device& gpu() { return user_->device(); }
  GpuUser& user() { return *user_; }

  // Bytes that depend on their place and on `iteration`, and are never kPoison.
  static std::vector<std::byte> values(size_t bytes, int iteration);
  // Memory with kPoison in it, until the end of the test.
  std::byte* allocate(MemoryPlace place, size_t bytes);
  std::vector<std::byte> read(const std::byte* from, size_t bytes);
  // Copies by the GPU to and from memory that the user has not, and waits for the end.
  void write_by_gpu(std::byte* to, const std::vector<std::byte>& bytes);
  std::vector<std::byte> read_by_gpu(const std::byte* from, size_t bytes);
  Queue make_queue();
  Mark make_mark();

  // Word `which`, counted from 0, each in a line of its own.
  DeviceWord& word(size_t which) { return words->word(which * kLine); }
  WordOperation write(size_t which, uint64_t value) { return {Kind::write, words->device(which * kLine), value}; }
  WordOperation wait_for(size_t which, uint64_t value) { return {Kind::wait_for, words->device(which * kLine), value}; }
  void enqueue(Queue queue, std::initializer_list<WordOperation> operations);
  void enqueue(Queue queue, const Copy& copy);
  // Within a minute, else the test has failed.
  bool comes(size_t which, uint64_t value);
  bool becomes_idle(Queue queue);
  // For so long that what can happen has happened; only a failure can be missed.
  static void let_it_happen();
  // An error that says something, after which the GPU goes on.
  void expect_refused(const Result<void>& result);
  // The same, or a skipped test where the GPU may accept it. A call that it accepts may end the context:
  // tools/gpu/conformance.py runs tests whose names begin with "strange_" each in a process of its own.
  void expect_refused_or_accepted(const Result<void>& result);

  static constexpr std::byte kPoison{0xd5};
  static constexpr size_t kLine = 64;

  std::unique_ptr<PinnedPages> words;

 private:
  struct Allocation {
    std::byte* memory;
    MemoryPlace place;
  };
  std::unique_ptr<GpuUser> user_;
  std::unique_ptr<Device::Use> use_;
  std::vector<Allocation> allocations_;
  std::vector<Queue> queues_;
  std::vector<Mark> marks_;
};

}  // namespace fccl::core
