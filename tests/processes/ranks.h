// Ranks: runs one function as several ranks, which are threads of this process or processes forked from it.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "fccl/fccl.h"

namespace fccl::core::testing {

enum class RanksAs { threads, processes };

// Both; threads alone where the thread sanitizer, which sees one process only, is built in.
std::vector<RanksAs> every_kind();
std::string name_of(RanksAs kind);

// Memory that the ranks share beside FCCL: a meeting point, one unique id at a time, and notes that tests give
// a meaning.
struct Whiteboard {
  std::atomic<int> arrived{0};
  std::atomic<int> meetings{0};
  fcclUniqueId id{};
  std::array<std::atomic<int64_t>, 128> notes{};
};

// One rank as its function sees it.
struct Seat {
  int rank;
  int ranks;
  Whiteboard& board;

  // Returns when every rank has come here; throws after 30 s.
  void meet() const;
};

struct Launch {
  RanksAs as = RanksAs::threads;
  int ranks = 2;
  std::vector<int> killed{};  // the ranks that must end by the signal; every other one must end well
  int by_signal = SIGKILL;    // 0: those ranks must end well, too
  std::chrono::seconds limit{60};
  std::vector<int> host_of{};  // the host that each rank, then a process, takes itself to be on; empty: all on one
};

// Runs `body` once per rank and fails the current test if a rank fails an expectation, throws, ends otherwise than expected or
// is not done within the limit. Processes that are late are killed; late threads cannot be, so then this process ends.
void run_ranks(const Launch& launch, const std::function<void(const Seat&)>& body);

// Rank 0 makes a unique id; all ranks return it. Collective.
fcclUniqueId agree_on_id(const Seat& seat);

// Deadlines far below those of a test, so that a hang shows as an error with its text.
fcclConfig_t config_of_tests();

// One rank's communicator over all seats, destroyed at the end of its life. Collective; throws if it cannot be made.
class Comm {
 public:
  explicit Comm(const Seat& seat, fcclConfig_t config = config_of_tests());
  explicit Comm(fcclComm_t made) : comm_(made) {}
  ~Comm() { fcclCommDestroy(comm_); }
  Comm(const Comm&) = delete;
  Comm& operator=(const Comm&) = delete;

  operator fcclComm_t() const { return comm_; }
  // For a test that ends the communicator by itself.
  fcclComm_t release() { return std::exchange(comm_, nullptr); }

 private:
  fcclComm_t comm_ = nullptr;
};

// EXPECT_TRUE(succeeded(call)) shows the code and the text of a call that failed.
::testing::AssertionResult succeeded(fcclResult_t result);

// How much slower everything may be than in a plain build; bounds on time are multiplied by it.
inline constexpr int kSlowdown = FCCL_TEST_SLOWDOWN;

// Now on the clock that all processes of this host share, and the milliseconds since such a time.
int64_t now_ns();
double ms_since(int64_t then_ns);

// Processor seconds that this thread has used so far.
double processor_seconds();

// How many times as long as on an idle machine a fixed piece of work of this thread takes now.
double slowness();

// True if something that began then has ended in time: it should take at most `ms` in a plain build on an idle machine, and
// gets half as much again on a busy one, times the load that other processes put on this processor just now.
::testing::AssertionResult in_time(int64_t then_ns, double ms);

// Sets an environment variable for the life of the object; made before the ranks are.
class Setting {
 public:
  Setting(const char* name, const std::string& value);
  ~Setting();
  Setting(const Setting&) = delete;
  Setting& operator=(const Setting&) = delete;

 private:
  const char* name_;
};

// Forks a child that holds all that its parent had open, and ends when the parent has been gone for that long.
void leave_a_child_behind(std::chrono::milliseconds longer);

// Entries of /proc/self/fd and /proc/self/task.
int count_descriptors();
int count_threads();

}  // namespace fccl::core::testing
