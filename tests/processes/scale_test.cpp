// Scale: many ranks, many communicators, many lives of one, and what an operation costs that only waits.
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>

#include <cstdio>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>
#include <thread>

#include "base/collective.h"
#include "os/memory.h"
#include "processes/size.h"
#include "processes/test_stream.h"
#include "processes/trial.h"

namespace fccl::core::testing {
namespace {

using namespace std::chrono_literals;

std::string name_of_kind(const ::testing::TestParamInfo<RanksAs>& info) { return name_of(info.param); }

// The lines of a file that contain `text`.
std::vector<std::string> lines_of(const char* path, const std::string& text) {
  std::vector<std::string> found;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);)
    if (line.find(text) != std::string::npos) found.push_back(line);
  return found;
}

// Bytes of the segments that this process has mapped.
std::vector<size_t> mapped_segments() {
  std::vector<size_t> sizes;
  for (const std::string& line : lines_of("/proc/self/maps", "/memfd:fccl ")) {
    std::istringstream range(line);
    size_t begin = 0, end = 0;
    char dash = 0;
    range >> std::hex >> begin >> dash >> end;
    sizes.push_back(end - begin);
  }
  return sizes;
}

// Bytes of the segments that this process has in memory.
size_t resident_bytes_of_segments() {
  size_t kib = 0;
  std::ifstream file("/proc/self/smaps");
  bool is_segment = false;
  for (std::string line; std::getline(file, line);) {
    if (line.find('-') < line.find(' ')) is_segment = line.find("/memfd:fccl ") != std::string::npos;
    if (is_segment && line.starts_with("Rss:")) kib += std::stoul(line.substr(4));
  }
  return kib << 10;
}

class FirstLongCall : public ::testing::TestWithParam<fcclColl_t> {};

// It would find the pages of its slots missing one by one.
TEST_P(FirstLongCall, takes_the_memory_of_all_slots_of_its_kind) {
  if (madvise(nullptr, 0, kPopulateWrite) != 0) GTEST_SKIP() << "Linux before 5.14 has no MADV_POPULATE_WRITE";
  const Setting attach("FCCL_CROSS_MEMORY_ATTACH", "off");
  run_ranks({RanksAs::processes, 2}, [](const Seat& seat) {
    const Comm comm(seat);
    const size_t before = resident_bytes_of_segments();
    const Recipe call{.collective = GetParam(), .dtype = fcclInt8, .count = 64 << 10};
    EXPECT_EQ(try_collective(call, seat.rank, seat.ranks, comm), "");
    EXPECT_GE(resident_bytes_of_segments() - before, size_t{1} << 20);
    seat.meet();
  });
}

INSTANTIATE_TEST_SUITE_P(Of, FirstLongCall, ::testing::Values(fcclCollAllGather, fcclCollAllReduce),
                         [](const auto& info) { return std::string(row_of(info.param).name); });

class ManyRanks : public ::testing::TestWithParam<RanksAs> {};

TEST_P(ManyRanks, that_are_64_meet_within_three_seconds_and_reduce_right) {
  run_ranks({GetParam(), 64}, [](const Seat& seat) {
    const fcclUniqueId id = agree_on_id(seat);
    fcclConfig_t config = config_of_tests();
    fcclComm_t made = nullptr;
    const int64_t begin = now_ns();
    ASSERT_TRUE(succeeded(fcclCommInitRankConfig(&made, seat.ranks, id, seat.rank, &config)));
    EXPECT_TRUE(in_time(begin, 3000));
    const Comm comm(made);
    for (const size_t count : {1, 3'000})
      EXPECT_EQ(
          try_collective({.collective = fcclCollAllReduce, .dtype = fcclFloat32, .count = count}, seat.rank, seat.ranks, comm),
          "");
  });
}

TEST_P(ManyRanks, that_are_64_share_at_most_8_MiB_each) {
  run_ranks({GetParam(), 64}, [](const Seat& seat) {
    const Comm comm(seat);
    const auto segments = mapped_segments();
    ASSERT_EQ(segments.size(), 1U);
    EXPECT_LE(segments.front(), seat.ranks * (size_t{8} << 20));
    seat.meet();
  });
}

INSTANTIATE_TEST_SUITE_P(As, ManyRanks, ::testing::ValuesIn(every_kind()), name_of_kind);

// Adds what this process has sent until it had the communicator; the process that serves the unique id tells of the root, too.
// Returns the sum over all.
fcclInitCost_t cost_of_all(const Seat& seat, fcclComm_t comm) {
  fcclInitCost_t cost{};
  cost.size = sizeof cost;
  EXPECT_TRUE(succeeded(fcclCommGetInitCost(comm, &cost)));
  seat.board.notes[1] += static_cast<int64_t>(cost.messages);
  seat.board.notes[2] += static_cast<int64_t>(cost.bytes);
  seat.meet();
  cost.messages = static_cast<unsigned long long>(seat.board.notes[1]);
  cost.bytes = static_cast<unsigned long long>(seat.board.notes[2]);
  return cost;
}

TEST(Crowd, of_64_processes_sends_at_most_6_messages_for_each_while_it_meets) {
  run_ranks({RanksAs::processes, 64}, [](const Seat& seat) {
    const Comm comm(seat);
    const fcclInitCost_t all = cost_of_all(seat, comm);
    // A hello, a roster and a descriptor for each, the leader aside.
    EXPECT_GE(all.messages, 3U * seat.ranks - 1);
    EXPECT_LE(all.messages, 6U * seat.ranks);
  });
}

double processor_ms() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  timeval both{};
  timeradd(&usage.ru_utime, &usage.ru_stime, &both);
  return 1e3 * static_cast<double>(both.tv_sec) + 1e-3 * static_cast<double>(both.tv_usec);
}

// The first `ranks` make `comm`. Far more ranks than processors wait, so the time that all take together is what it costs.
// Returns it for each of these ranks.
double processor_ms_of_one_among(int ranks, const Seat& seat, fcclComm_t& comm) {
  const fcclUniqueId id = agree_on_id(seat);
  std::atomic<int64_t>& taken_us = seat.board.notes[0];
  if (seat.rank == 0) taken_us = 0;
  seat.meet();
  if (seat.rank < ranks) {
    const double before = processor_ms();
    fcclConfig_t config = config_of_tests();
    EXPECT_TRUE(succeeded(fcclCommInitRankConfig(&comm, ranks, id, seat.rank, &config)));
    taken_us += static_cast<int64_t>(1e3 * (processor_ms() - before));
  }
  seat.meet();
  return 1e-3 * static_cast<double>(taken_us) / ranks;
}

TEST(LongCrowd, of_512_processes_meets_by_6_MB_and_by_6_messages_and_5_times_the_processor_of_64_for_each) {
  constexpr int kRanks = 512;
  run_ranks({RanksAs::processes, kRanks}, [](const Seat& seat) {
    fcclComm_t small = nullptr, large = nullptr;
    const double among_64 = processor_ms_of_one_among(64, seat, small);
    fcclCommDestroy(small);
    const double among_all = processor_ms_of_one_among(kRanks, seat, large);
    const Comm comm(large);
    if (seat.rank == 0) std::printf("%.1f ms of a processor among 64, %.1f among 512\n", among_64, among_all);
    EXPECT_LT(among_all, 5 * among_64);  // 8 times: all that each rank does for each other one
    const fcclInitCost_t all = cost_of_all(seat, comm);
    EXPECT_LE(all.messages, 6U * kRanks);
    EXPECT_LE(all.bytes, 6'000'000U);
    if (seat.rank == 0) std::printf("%llu messages, %llu bytes\n", all.messages, all.bytes);
    int64_t mine = 3 * seat.rank, sum = -1;
    EXPECT_TRUE(succeeded(fcclAllReduce(&mine, &sum, 1, fcclInt64, fcclSum, comm, nullptr)));
    EXPECT_EQ(sum, 3 * kRanks * (kRanks - 1) / 2);
  });
}

// One of the ranks that share a process looks for all, since looking takes descriptors.
bool looks(const Seat& seat, RanksAs as) { return as == RanksAs::processes || seat.rank == 0; }

// The resources that a communicator may leave behind.
struct Holdings {
  int descriptors = count_descriptors();
  int threads = count_threads();
  size_t segments = mapped_segments().size();
  size_t mappings = lines_of("/proc/self/maps", "").size();
  size_t resident_pages = 0;

  Holdings() {
    size_t virtual_pages = 0;
    std::ifstream("/proc/self/statm") >> virtual_pages >> resident_pages;
  }
};

class LongManyLives : public ::testing::TestWithParam<RanksAs> {};

TEST_P(LongManyLives, that_are_1000_leave_no_descriptor_no_thread_and_no_memory) {
  run_ranks({GetParam(), 2}, [](const Seat& seat) {
    const auto live = [&](int lives) {
      for (int life = 0; life < lives; ++life) {
        const Comm comm(seat);
        const TestStream stream;
        float value = 1;
        EXPECT_TRUE(succeeded(fcclAllReduce(&value, &value, 1, fcclFloat32, fcclSum, comm, stream)));
        EXPECT_TRUE(succeeded(fcclStreamSynchronize(stream)));
      }
      // The threads of the bootstrap and of the streams may end a moment after the last rank has left.
      seat.meet();
      std::this_thread::sleep_for(200ms);
      seat.meet();
    };
    // The allocator's arenas have found their size by then.
    live(200);
    std::optional<Holdings> before, after;
    if (looks(seat, GetParam())) before.emplace();
    seat.meet();
    live(1000);
    if (looks(seat, GetParam())) after.emplace();
    seat.meet();
    if (!after) return;
    EXPECT_LE(after->descriptors, before->descriptors);
    EXPECT_LE(after->threads, before->threads);
    EXPECT_EQ(after->segments, 0U);
    // A mapping or a page lost in each life would be 1000.
    EXPECT_LT(after->mappings, before->mappings + 100 * kSlowdown);
    if (kSlowdown == 1)
      EXPECT_LT(after->resident_pages, before->resident_pages + 500);
    else
      std::puts("Resident pages are not compared: a sanitizer's allocator keeps what was freed");
  });
}

INSTANTIATE_TEST_SUITE_P(As, LongManyLives, ::testing::ValuesIn(every_kind()), name_of_kind);

class ManyCommunicators : public ::testing::TestWithParam<Size> {};

TEST_P(ManyCommunicators, that_are_200_at_once_work_with_few_descriptors_and_leave_none) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const int before = count_descriptors();
    int most = 0;
    {
      std::vector<std::unique_ptr<Comm>> comms;
      for (int i = 0; i < 200; ++i) {
        comms.push_back(std::make_unique<Comm>(seat));
        most = std::max(most, count_descriptors());
      }
      for (int i = 0; i < 200; ++i)
        EXPECT_EQ(try_collective({.collective = fcclCollAllGather, .dtype = fcclFloat32, .count = 2'000, .iteration = i},
                                 seat.rank, seat.ranks, *comms[i]),
                  "");
      EXPECT_LT(most, 1024);
      // Not one for each: what is shared is per process of a peer.
      EXPECT_LT(most, before + 100);
      seat.meet();
    }
    seat.meet();
    if (looks(seat, GetParam().as)) {
      EXPECT_EQ(mapped_segments().size(), 0U);
      // The bootstrap's last thread may end a moment later.
      for (int patience = 0; patience < 200 && count_descriptors() > before; ++patience) std::this_thread::sleep_for(10ms);
      EXPECT_LE(count_descriptors(), before);
    }
    seat.meet();
  });
}

INSTANTIATE_TEST_SUITE_P(As, ManyCommunicators, ::testing::ValuesIn(sizes(2, 3)), name_of_size);

class Waiting : public ::testing::TestWithParam<RanksAs> {
 protected:
  static constexpr auto kWindow = 1500ms;
  static constexpr auto kUntilAsleep = 200ms;

  // The share of one processor that this process takes within the window. No rank may do anything else meanwhile.
  static double burned_share() {
    std::this_thread::sleep_for(kUntilAsleep);
    const double used = processor_ms();
    const int64_t begin = now_ns();
    std::this_thread::sleep_for(kWindow);
    return (processor_ms() - used) / ms_since(begin);
  }
  static void sleep_through_the_window() { std::this_thread::sleep_for(kUntilAsleep + kWindow + 200ms); }
};

TEST_P(Waiting, on_a_stream_burns_less_than_5_percent_of_a_core_and_ends_soon_after_the_peer_came) {
  run_ranks({GetParam(), 2}, [](const Seat& seat) {
    const Comm comm(seat);
    const TestStream stream;
    Trial trial({.collective = fcclCollAllReduce, .dtype = fcclFloat32, .count = 50'000}, seat.rank, seat.ranks);
    std::atomic<int64_t>& came = seat.board.notes[0];
    seat.meet();
    if (seat.rank == 0) {
      EXPECT_TRUE(succeeded(trial.issue(comm, stream)));
      EXPECT_LT(burned_share(), 0.05 * kSlowdown);
      EXPECT_EQ(fcclStreamQuery(stream), fcclInProgress);
      EXPECT_TRUE(succeeded(fcclStreamSynchronize(stream)));
      // Milliseconds on an idle machine; a sleep that grows without bound would take longer than this.
      EXPECT_TRUE(in_time(came, 1000));
    } else {
      sleep_through_the_window();
      came = now_ns();
      EXPECT_TRUE(succeeded(trial.issue(comm)));
    }
    EXPECT_EQ(trial.fault(), "");
  });
}

TEST_P(Waiting, on_16_streams_burns_no_more_than_on_one) {
  run_ranks({GetParam(), 2}, [](const Seat& seat) {
    constexpr int kStreams = 16;
    std::vector<std::unique_ptr<Comm>> comms;
    for (int i = 0; i < kStreams; ++i) comms.push_back(std::make_unique<Comm>(seat));
    const std::array<TestStream, kStreams> streams;
    seat.meet();
    if (seat.rank == 1) sleep_through_the_window();
    for (int i = 0; i < kStreams; ++i) EXPECT_TRUE(succeeded(fcclBarrier(*comms[i], streams[i])));
    if (seat.rank == 0) {
      EXPECT_LT(burned_share(), 0.05 * kSlowdown);
    }
    for (const TestStream& stream : streams) EXPECT_TRUE(succeeded(fcclStreamSynchronize(stream)));
  });
}

TEST_P(Waiting, in_a_blocking_call_sleeps) {
  run_ranks({GetParam(), 2}, [](const Seat& seat) {
    const Comm comm(seat);
    seat.meet();
    double share = 0;
    std::optional<std::thread> watcher;
    if (seat.rank == 0)
      watcher.emplace([&] { share = burned_share(); });
    else
      sleep_through_the_window();
    EXPECT_TRUE(succeeded(fcclBarrier(comm, nullptr)));
    if (watcher) watcher->join();
    // One that spins or yields would take all of it.
    EXPECT_LT(share, 0.4);
  });
}

INSTANTIATE_TEST_SUITE_P(As, Waiting, ::testing::ValuesIn(every_kind()), name_of_kind);

}  // namespace
}  // namespace fccl::core::testing
