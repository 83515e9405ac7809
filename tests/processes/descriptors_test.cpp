// Init by a rank that may open few descriptors more: wherever it fails, every rank is told at once, and why.
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "processes/hosts.h"

namespace fccl::core::testing {
namespace {

// Notes of the whiteboard: what init said to each rank, from kResult on; whether one of them was told too little or too late.
enum DescriptorNote : int { kIsWrong, kResult };

bool is_eventfd(int descriptor) {
  std::error_code none;
  return std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(descriptor), none) == "anon_inode:[eventfd]";
}

// Lets this process open so many descriptors more, and no more than before once it is destroyed. A limit is one of numbers, so
// gaps below what the library holds back are filled: one that was let go of above the limit would be room for nothing.
class Limited {
 public:
  explicit Limited(int more) {
    int held_back = -1;
    for (int descriptor = 0; descriptor < kMostNumbers; ++descriptor)
      if (is_eventfd(descriptor)) held_back = descriptor;
    int next = fcntl(STDIN_FILENO, F_DUPFD, 0);
    for (; next >= 0 && next < held_back; next = fcntl(STDIN_FILENO, F_DUPFD, 0)) fillers_.push_back(next);
    close(next);
    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &before_), 0);
    const rlimit few{static_cast<rlim_t>(next + more), before_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  }
  ~Limited() {
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before_), 0);
    for (const int filler : fillers_) close(filler);
  }
  Limited(const Limited&) = delete;
  Limited& operator=(const Limited&) = delete;

 private:
  static constexpr int kMostNumbers = 64;

  rlimit before_{};
  std::vector<int> fillers_;
};

fcclResult_t init_with(int more, const Seat& seat, const fcclUniqueId& id, fcclComm_t& comm) {
  fcclConfig_t config = config_of_tests();
  config.initTimeoutMs = 20'000;
  std::optional<Limited> limited;
  if (more >= 0) limited.emplace(more);
  return fcclCommInitRankConfig(&comm, seat.ranks, id, seat.rank, &config);
}

// True if all ranks have a communicator.
bool try_to_init(const Seat& seat, int more) {
  auto& notes = seat.board.notes;
  const fcclUniqueId id = agree_on_id(seat);
  fcclComm_t made = nullptr;
  const int64_t begin = now_ns();
  const fcclResult_t result = init_with(more, seat, id, made);
  const Comm comm(made);
  const double took = ms_since(begin);
  const std::string text = result == fcclSuccess ? "" : fcclGetLastError(nullptr);
  notes[kResult + seat.rank] = result;
  seat.meet();
  int succeeded = 0;
  for (int rank = 0; rank < seat.ranks; ++rank) succeeded += notes[kResult + rank] == fcclSuccess ? 1 : 0;
  if (succeeded == seat.ranks) return true;
  EXPECT_EQ(succeeded, 0);
  EXPECT_LT(took, 2 * kSecond) << text;
  EXPECT_NE(text.find("Too many open files"), std::string::npos) << text;
  if (::testing::Test::HasFailure()) notes[kIsWrong] = 1;
  seat.meet();
  return false;
}

// The rank that is short of descriptors, and its hosts.
struct Scarcity {
  const char* name;
  OnHosts hosts;
  int rank;
};

void PrintTo(const Scarcity& scarcity, std::ostream* out) { *out << scarcity.name; }

class Scarce : public ::testing::TestWithParam<Scarcity> {};

TEST_P(Scarce, descriptors_of_one_rank_end_init_at_once_on_every_rank_with_the_cause) {
  if (kSlowdown > 1) GTEST_SKIP() << "a sanitizer needs descriptors of its own to check an object's type";
  run_ranks(GetParam().hosts.launch(), [](const Seat& seat) {
    const bool is_short = seat.rank == GetParam().rank;
    int failed = 0;
    // Few at first, where one more fails elsewhere.
    for (int more = 0; seat.board.notes[kIsWrong] == 0; more += more < 20 ? 1 : 7, ++failed) {
      SCOPED_TRACE("with " + std::to_string(more) + " descriptors more");
      ASSERT_LT(more, 300);
      if (try_to_init(seat, is_short ? more : -1)) break;
    }
    EXPECT_GE(failed, 4);
  });
}

const OnHosts kThreeOfOne{"3_ranks", {0, 0, 0}};

INSTANTIATE_TEST_SUITE_P(OnOneHost, Scarce,
                         ::testing::Values(Scarcity{"of_the_root", kThreeOfOne, 0},
                                           Scarcity{"of_another_rank", kThreeOfOne, 1}),
                         [](const auto& scarcity) { return scarcity.param.name; });
INSTANTIATE_TEST_SUITE_P(OnTwoHosts, Scarce,
                         ::testing::Values(Scarcity{"of_the_root", kTwoAndTwo, 0}, Scarcity{"of_its_mate", kTwoAndTwo, 1},
                                           Scarcity{"of_another_leader", kTwoAndTwo, 2},
                                           Scarcity{"of_another_mate", kTwoAndTwo, 3}),
                         [](const auto& scarcity) { return scarcity.param.name; });

}  // namespace
}  // namespace fccl::core::testing
