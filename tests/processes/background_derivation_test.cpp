// Split, shrink and grow that return at once: what may be asked of the old and of the new communicator until it is made, and
// how that ends early.
#include <array>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "processes/elastic.h"
#include "processes/test_stream.h"

namespace fccl::core::testing {
namespace {

using namespace std::chrono_literals;

// One of the calls that make a communicator of another one, between the first two of three seats, or with the third.
struct Derivation {
  const char* name;
  // As rank of the parent of the first `parents` seats, or as the new one where that is null.
  int parents;
  std::function<fcclResult_t(const Seat& seat, fcclComm_t parent, fcclComm_t* made, fcclConfig_t* config)> call;
  // How many seats take part, in their order.
  int ranks;
  bool fails_the_parent;  // the parent fails if the call ends before the others have come
};

const Derivation kSplit{"split", 3,
                        [](const Seat& seat, fcclComm_t parent, fcclComm_t* made, fcclConfig_t* config) {
                          return fcclCommSplit(parent, 4, seat.rank, made, config);
                        },
                        3, true};
const Derivation kShrink{"shrink", 3,
                         [](const Seat&, fcclComm_t parent, fcclComm_t* made, fcclConfig_t* config) {
                           std::array excluded{2};
                           return fcclCommShrink(parent, excluded.data(), 1, made, config, FCCL_SHRINK_DEFAULT);
                         },
                         2, false};
const Derivation kGrow{"grow", 2,
                       [](const Seat& seat, fcclComm_t parent, fcclComm_t* made, fcclConfig_t* config) {
                         const fcclUniqueId id = seat.board.id;
                         return fcclCommGrow(parent, 3, &id, parent == nullptr ? seat.rank : -1, made, config);
                       },
                       3, true};

void PrintTo(const Derivation& derivation, std::ostream* out) { *out << derivation.name; }

class BackgroundDerivation : public ::testing::TestWithParam<std::tuple<Derivation, RanksAs>> {
 public:
  static const Derivation& derivation() { return std::get<0>(GetParam()); }
  static Launch launch() { return {std::get<1>(GetParam()), 3}; }
};

// The parent; and the id, if it will be asked for. Collective.
fcclComm_t make_ready(const Seat& seat, const Derivation& derivation) {
  fcclComm_t parent = make_parent(seat, derivation.parents);
  if (derivation.parents < 3) static_cast<void>(agree_to_grow(seat, parent));
  return parent;
}

fcclComm_t begin(const Seat& seat, const Derivation& derivation, fcclComm_t parent, int deadline_ms = 0) {
  fcclConfig_t config = config_of_tests();
  config.blocking = 0;
  if (deadline_ms > 0) config.initTimeoutMs = deadline_ms;
  fcclComm_t made = nullptr;
  EXPECT_EQ(derivation.call(seat, parent, &made, &config), fcclInProgress) << fcclGetLastError(nullptr);
  EXPECT_NE(made, nullptr);
  return made;
}

fcclResult_t state_of(fcclComm_t comm) {
  fcclResult_t state = fcclInternalError;
  EXPECT_TRUE(succeeded(fcclCommGetAsyncError(comm, &state)));
  return state;
}

fcclResult_t await_end(fcclComm_t comm) {
  while (state_of(comm) == fcclInProgress) std::this_thread::sleep_for(1ms);
  return state_of(comm);
}

TEST_P(BackgroundDerivation, makes_a_communicator_that_works_while_the_old_one_takes_no_calls) {
  run_ranks(launch(), [](const Seat& seat) {
    const Derivation& derivation = BackgroundDerivation::derivation();
    const Comm parent(make_ready(seat, derivation));
    fcclComm_t made = nullptr;
    if (seat.rank == 0) {
      made = begin(seat, derivation, parent);
      EXPECT_EQ(state_of(made), fcclInProgress);
      EXPECT_EQ(state_of(parent), fcclSuccess);
      int value = -7;
      fcclComm_t none = nullptr;
      fcclUniqueId id;
      const std::array results = {fcclAllReduce(&value, &value, 1, fcclInt32, fcclSum, parent, nullptr),
                                  fcclSend(&value, 1, fcclInt32, 1, parent, nullptr),
                                  fcclCommSplit(parent, 0, 0, &none, nullptr),
                                  fcclCommShrink(parent, nullptr, 0, &none, nullptr, FCCL_SHRINK_DEFAULT),
                                  fcclCommGrow(parent, 4, nullptr, -1, &none, nullptr),
                                  fcclCommGetUniqueId(parent, &id)};
      for (const fcclResult_t result : results) EXPECT_EQ(result, fcclInvalidUsage);
      EXPECT_NE(std::string(fcclGetLastError(nullptr)).find("still being made of this one"), std::string::npos)
          << fcclGetLastError(nullptr);
      EXPECT_EQ(fcclBarrier(made, nullptr), fcclInvalidUsage);
      EXPECT_EQ(value, -7);
    }
    seat.meet();
    if (seat.rank < derivation.ranks) {
      if (seat.rank != 0) made = begin(seat, derivation, parent);
      const Comm comm(made);
      EXPECT_EQ(await_end(comm), fcclSuccess) << fcclGetLastError(comm);
      EXPECT_EQ(fault_as_rank(comm, seat.rank, derivation.ranks), "");
    }
    seat.meet();
    if (seat.rank < derivation.parents) {
      EXPECT_EQ(fault_as_rank(parent, seat.rank, derivation.parents), "");
    }
  });
}

TEST_P(BackgroundDerivation, lets_the_old_one_be_destroyed_meanwhile) {
  run_ranks(launch(), [](const Seat& seat) {
    const Derivation& derivation = BackgroundDerivation::derivation();
    fcclComm_t parent = make_ready(seat, derivation);
    fcclComm_t made = nullptr;
    if (seat.rank < derivation.ranks) made = begin(seat, derivation, parent);
    if (seat.rank < 2) fcclCommDestroy(parent);
    if (made != nullptr) {
      const Comm comm(made);
      EXPECT_EQ(await_end(comm), fcclSuccess) << fcclGetLastError(comm);
      EXPECT_EQ(fault_as_rank(comm, seat.rank, derivation.ranks), "");
    }
    seat.meet();
    if (seat.rank == 2) fcclCommDestroy(parent);
  });
}

TEST_P(BackgroundDerivation, that_is_ended_while_others_have_not_come_ends_soon) {
  run_ranks(launch(), [](const Seat& seat) {
    const Derivation& derivation = BackgroundDerivation::derivation();
    const Comm parent(make_ready(seat, derivation));
    if (seat.rank == 0) {
      fcclComm_t made = begin(seat, derivation, parent);
      std::this_thread::sleep_for(30ms);
      const int64_t begin = now_ns();
      fcclCommDestroy(made);
      EXPECT_TRUE(in_time(begin, 1500));
    }
    seat.meet();
    if (seat.rank >= derivation.parents) return;
    if (derivation.fails_the_parent) {
      EXPECT_EQ(fcclBarrier(parent, nullptr), fcclAborted);
    } else {
      EXPECT_EQ(fault_as_rank(parent, seat.rank, derivation.parents), "");
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Of, BackgroundDerivation,
                         ::testing::Combine(::testing::Values(kSplit, kShrink, kGrow), ::testing::ValuesIn(every_kind())),
                         [](const auto& each) {
                           return std::string(std::get<0>(each.param).name) + "_as_" + name_of(std::get<1>(each.param));
                         });

TEST(BackgroundShrink, that_a_survivor_does_not_come_to_tells_the_error_and_leaves_the_old_one_good) {
  run_ranks({RanksAs::threads, 3}, [](const Seat& seat) {
    const Comm parent(seat);
    if (seat.rank == 0) {
      const Comm made(begin(seat, kShrink, parent, 300));
      EXPECT_EQ(await_end(made), fcclTimeout);
      EXPECT_NE(std::string(fcclGetLastError(made)).find("without rank 2 for rank 1 (pid"), std::string::npos)
          << fcclGetLastError(made);
      EXPECT_EQ(fcclBarrier(made, nullptr), fcclTimeout);
    }
    seat.meet();
    EXPECT_EQ(fault_as_rank(parent, seat.rank, 3), "");
  });
}

TEST(BackgroundShrink, that_is_ended_while_it_waits_for_a_receive_ends_soon_and_leaves_the_old_one_good) {
  run_ranks({RanksAs::threads, 3}, [](const Seat& seat) {
    const Comm parent(seat);
    int received = -1;
    const int sent = 77;
    const TestStream stream;
    if (seat.rank == 0) {
      EXPECT_TRUE(succeeded(fcclRecv(&received, 1, fcclInt32, 1, parent, stream)));
      fcclComm_t made = begin(seat, kShrink, parent);
      std::this_thread::sleep_for(30ms);
      EXPECT_EQ(state_of(made), fcclInProgress);
      const int64_t begin = now_ns();
      fcclCommDestroy(made);
      EXPECT_TRUE(in_time(begin, 1500));
    }
    seat.meet();
    if (seat.rank == 1) {
      EXPECT_TRUE(succeeded(fcclSend(&sent, 1, fcclInt32, 0, parent, nullptr)));
    }
    EXPECT_TRUE(succeeded(fcclStreamSynchronize(stream)));
    EXPECT_EQ(received, seat.rank == 0 ? sent : -1);
    EXPECT_EQ(fault_as_rank(parent, seat.rank, 3), "");
  });
}

TEST(BackgroundSplit, without_a_color_returns_when_its_part_is_done) {
  run_ranks({RanksAs::threads, 3}, [](const Seat& seat) {
    const Comm parent(seat);
    fcclConfig_t config = config_of_tests();
    config.blocking = 0;
    fcclComm_t made = nullptr;
    EXPECT_EQ(fcclCommSplit(parent, seat.rank == 1 ? FCCL_SPLIT_NOCOLOR : 0, 0, &made, &config),
              seat.rank == 1 ? fcclSuccess : fcclInProgress);
    EXPECT_EQ(made == nullptr, seat.rank == 1);
    if (seat.rank != 1) {
      EXPECT_EQ(await_end(made), fcclSuccess) << fcclGetLastError(made);
    }
    EXPECT_EQ(fault_as_rank(parent, seat.rank, 3), "");
    fcclCommDestroy(made);
  });
}

}  // namespace
}  // namespace fccl::core::testing
