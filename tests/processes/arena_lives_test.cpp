// Communicators that come and go beside memory of the arena: right results, and nothing that is left behind.
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mount.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <ostream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "processes/ranks.h"

#if !defined(FCCL_RANKS_AS_THREADS_ONLY)

namespace fccl::core::testing {
namespace {

using namespace std::chrono_literals;

// Small enough for a moment, too much for a mailbox.
constexpr size_t kCount = 5000;
// The lives after which there is all that a process keeps for good.
constexpr int kFirstLives = 10;

std::vector<std::string> mappings() {
  std::ifstream file("/proc/self/maps");
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

ptrdiff_t count_mapped_arenas() {
  return std::ranges::count_if(mappings(), [](const std::string& line) { return line.find("fccl-arena") != line.npos; });
}

// The C library would keep a heap and a stack for as many threads as there have been at a time, which differs from run to run.
// Stacks of more than 40 MiB it gives back.
void keep_no_memory_of_threads() {
  mallopt(M_ARENA_MAX, 1);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  EXPECT_EQ(pthread_attr_setstacksize(&attributes, size_t{64} << 20), 0);
  EXPECT_EQ(pthread_setattr_default_np(&attributes), 0);
  pthread_attr_destroy(&attributes);
}

// Gives this process and its ranks a /dev/shm that nobody else writes into. False where it may not.
bool hide_shared_files_of_others() {
  return unshare(CLONE_NEWNS) == 0 && mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         mount("none", "/dev/shm", "tmpfs", 0, nullptr) == 0;
}

ptrdiff_t count_shared_files() {
  const std::filesystem::directory_iterator entries("/dev/shm");
  return std::distance(begin(entries), end(entries));
}

// The system's resources that a process holds.
struct Holdings {
  int descriptors = count_descriptors();
  int threads = count_threads();
  std::vector<std::string> mapped = mappings();
  ptrdiff_t shared_files = count_shared_files();

  // A sanitizer maps memory of its own.
  bool is_as(const Holdings& other) const {
    return descriptors == other.descriptors && threads == other.threads && shared_files == other.shared_files &&
           (kSlowdown > 1 || mapped.size() == other.mapped.size());
  }
};

std::ostream& operator<<(std::ostream& out, const Holdings& has) {
  out << has.descriptors << " descriptors, " << has.threads << " threads, " << has.shared_files << " shared files and "
      << has.mapped.size() << " mappings:";
  for (const std::string& line : has.mapped) out << "\n  " << line;
  return out;
}

// An allocation of this rank, which some lives of communicators outlive and others do not.
class Memory {
 public:
  explicit Memory(size_t count) { EXPECT_TRUE(succeeded(fcclMemAlloc(reinterpret_cast<void**>(&data_), count * sizeof(int)))); }
  Memory(Memory&& other) noexcept : data_(std::exchange(other.data_, nullptr)) {}
  Memory& operator=(Memory&& other) noexcept {
    std::swap(data_, other.data_);
    return *this;
  }
  ~Memory() { EXPECT_TRUE(succeeded(fcclMemFree(data_))); }

  int* get() const { return data_; }

 private:
  int* data_ = nullptr;
};

unsigned long long calls_that_read_peers(fcclComm_t comm) {
  unsigned long long calls = 0;
  for (int path = 0; fcclMetricsPathName(path) != nullptr; ++path)
    for (int size = 0; fcclMetricsLargestSize(size) != 0 && fcclMetricsPathName(path) == std::string_view("mapped"); ++size) {
      fcclCallMetrics_t metrics{};
      metrics.size = sizeof metrics;
      EXPECT_TRUE(succeeded(fcclCommGetCallMetrics(comm, fcclCollAllGather, path, size, &metrics)));
      calls += metrics.calls;
    }
  return calls;
}

int value_of(int rank, size_t index, int life) { return static_cast<int>(index) * 7 + rank * 1'000'003 + life * 13; }

// Elements that are wrong after an AllGather of memory of the arena.
size_t gather(const Seat& seat, fcclComm_t comm, const Memory& given, const Memory& taken, int life) {
  for (size_t i = 0; i < kCount; ++i) given.get()[i] = value_of(seat.rank, i, life);
  std::memset(taken.get(), 0xa5, kCount * seat.ranks * sizeof(int));
  EXPECT_TRUE(succeeded(fcclAllGather(given.get(), taken.get(), kCount, fcclInt32, comm, nullptr)));
  size_t wrong = 0;
  for (size_t i = 0; i < kCount * seat.ranks; ++i)
    wrong += taken.get()[i] != value_of(static_cast<int>(i / kCount), i % kCount, life) ? 1 : 0;
  return wrong;
}

// So many communicators one after the other. One memory outlives every second communicator; the memory of the others goes
// before them.
void live(const Seat& seat, int from, int to) {
  Memory kept(kCount);
  for (int life = from; life < to; ++life) {
    Memory given(kCount + life % 100), taken(kCount * seat.ranks + life % 300);
    const Comm comm(seat);
    ASSERT_EQ(gather(seat, comm, given, taken, life), 0U) << "life " << life;
    ASSERT_EQ(gather(seat, comm, kept, taken, life + 1), 0U) << "life " << life;
    EXPECT_GT(calls_that_read_peers(comm), 0U) << "life " << life;
    EXPECT_EQ(count_mapped_arenas(), 2) << "its own and its peer's, in life " << life;
    if (life % 2 == 0)
      kept = std::move(given);
    else
      const Memory gone = std::move(given);
  }
}

// The last threads of a communicator may end a moment later.
Holdings holdings_in_the_end(const Seat& seat, const Holdings& wanted) {
  seat.meet();
  Holdings found;
  for (int patience = 0; patience < 200 && !found.is_as(wanted); ++patience, found = Holdings())
    std::this_thread::sleep_for(10ms);
  seat.meet();
  return found;
}

void leave_nothing_behind(int lives) {
  keep_no_memory_of_threads();
  const bool is_alone = hide_shared_files_of_others();
  run_ranks({.as = RanksAs::processes, .ranks = 2, .limit = 250s}, [=](const Seat& seat) {
    const Memory whole_time(kCount);
    live(seat, 0, kFirstLives);
    seat.meet();
    std::this_thread::sleep_for(200ms);
    const Holdings before;
    live(seat, kFirstLives, lives);
    Holdings after = holdings_in_the_end(seat, before);
    if (!is_alone) after.shared_files = before.shared_files;
    EXPECT_TRUE(after.is_as(before)) << "after " << lives << " lives there are " << after << "\nand before there were "
                                     << before;
    EXPECT_EQ(count_mapped_arenas(), 1);
  });
}

TEST(ArenaLives, that_are_30_leave_nothing_behind) { leave_nothing_behind(30); }

TEST(LongArenaLives, that_are_1000_leave_nothing_behind) { leave_nothing_behind(1000); }

}  // namespace
}  // namespace fccl::core::testing

#endif
