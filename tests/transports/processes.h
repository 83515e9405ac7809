// Processes: several ends of a network in one test, which one thread drives in turn.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "wire/transport.h"

namespace fccl::core {

// Bytes that can be compared and sorted.
inline std::string text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// A completion that a process of a test has polled; a message's bytes are copied.
struct Finding {
  int rail = 0;
  Completion::Kind kind{};
  uint32_t immediate = 0;
  uint64_t tag = 0;
  std::vector<std::byte> bytes;
};

// One process of a test: its transport, all its registered memory, and what that memory must hold in the end.
struct Process {
  std::vector<std::byte> bytes;
  std::vector<std::byte> expected;
  // The same bytes twice: as the source of its operations, and as peers may write them.
  MemoryId memory{};
  MemoryId landing{};
  std::vector<Finding> found;
  // Goes first, while its memory is still there.
  std::unique_ptr<Transport> transport;
};

// From which process to which, by which rail of both.
struct Way {
  int from = 0;
  int to = 1;
  int rail = 0;
};

// For one thread. Any error is a failure of the running test.
class Processes {
 protected:
  static constexpr size_t kMemoryBytes = size_t{1} << 19;
  static constexpr std::chrono::seconds kPatience{20};

  // In place of those of before: one process per transport, with memory, and room for so many messages on each rail.
  void start(std::vector<std::unique_ptr<Transport>> transports, int messages);
  Process& process(int number) { return processes[static_cast<size_t>(number)]; }
  Transport& transport(int number) { return *process(number).transport; }
  const TransportLimits& limits() { return transport(0).limits(); }
  // The largest write of at most so many bytes.
  size_t writable(size_t bytes) { return std::min(bytes, limits().write_bytes); }
  // The low bits that arrive.
  uint32_t bits_of(uint32_t immediate);

  void register_memory_of(Process& process);
  // Operations with tags of their own; `here` and `there` are offsets in the memory of the two processes.
  Operation write(Way way, size_t here, size_t bytes, size_t there, uint32_t immediate = 0);
  Operation message(Way way, size_t here, size_t bytes);
  // Both ends connect to each other, if they have not.
  PeerId peer(Way way);
  // The one end alone.
  PeerId connected(Way way);
  // Bytes of a process that differ by `salt`, also in what is expected of it.
  void fill(int number, size_t at, size_t bytes, uint32_t salt);
  // Bytes of one process will be those of another.
  void expect_copy(int from, size_t here, size_t bytes, int to, size_t there);
  std::span<const std::byte> expected(int number, size_t at, size_t bytes);
  std::span<const std::byte> actual(int number, size_t at, size_t bytes);
  // No byte of any process differs from what is expected.
  void expect_memory();

  // Posts all of them; where a rail is full, all processes are polled.
  void post(Way way, std::span<const Operation> operations);
  void post(Way way, const Operation& operation) { post(way, std::span(&operation, 1)); }
  // Polls a process once on each rail.
  void poll(int number);
  // Polls all in turn until `done`; false after kPatience, or once anything has failed.
  bool drive_until(const std::function<bool()>& done);
  // Until so many more polls of each, for what should not come.
  void drive(int polls);
  // How many of a kind a process has found.
  size_t count(int number, Completion::Kind kind) const;

  std::vector<Process> processes;
  // Called for each finding, before anything is polled again.
  std::function<void(int process, const Finding& finding)> on_found;
  // The memory of each process that start makes.
  size_t memory_bytes = kMemoryBytes;
  // Completions that one poll may find.
  size_t room = 16;

 private:
  struct Known {
    int from, to, rail;
    PeerId peer;
  };
  std::vector<Known> peers_;
  uint64_t next_tag_ = 1;
};

}  // namespace fccl::core
