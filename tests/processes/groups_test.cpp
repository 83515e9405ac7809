// Groups: calls that are issued together, in whatever order they stand, also those of several ranks of one thread.
#include <algorithm>
#include <array>
#include <memory>
#include <thread>
#include <vector>

#include "processes/parcel.h"
#include "processes/size.h"
#include "processes/test_stream.h"

namespace fccl::core::testing {
namespace {

using Parcels = std::vector<std::unique_ptr<Parcel>>;

// Everybody sends to everybody, itself included, `each` times.
struct Exchange {
  Parcels sent, received;

  Exchange(const Seat& seat, size_t count, int each) {
    for (int peer = 0; peer < seat.ranks; ++peer)
      for (int i = 0; i < each; ++i) {
        sent.push_back(std::make_unique<Parcel>(Route{.from = seat.rank, .to = peer, .count = count, .iteration = i}));
        received.push_back(std::make_unique<Parcel>(Route{.from = peer, .to = seat.rank, .count = count, .iteration = i}));
      }
  }
  void send_all(fcclComm_t comm, fcclStream_t stream) {
    for (auto& parcel : sent) EXPECT_TRUE(succeeded(parcel->send(comm, stream)));
  }
  void receive_all(fcclComm_t comm, fcclStream_t stream) {
    for (auto& parcel : received) EXPECT_TRUE(succeeded(parcel->receive(comm, stream)));
  }
  std::string fault() const {
    std::string all;
    for (const auto& parcel : received) all += parcel->fault();
    return all;
  }
};

class Groups : public ::testing::TestWithParam<Size> {};

TEST_P(Groups, let_everybody_send_to_everybody_before_anybody_receives) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat);
    for (const size_t count : {size_t{0}, size_t{100}, size_t{5000}, size_t{700'000}}) {
      Exchange exchange(seat, count, 2);
      EXPECT_TRUE(succeeded(fcclGroupStart()));
      exchange.send_all(comm, nullptr);
      exchange.receive_all(comm, nullptr);
      EXPECT_TRUE(succeeded(fcclGroupEnd()));
      EXPECT_EQ(exchange.fault(), "");
    }
  });
}

TEST_P(Groups, run_as_one_item_of_a_stream) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat);
    const TestStream stream;
    std::vector<std::unique_ptr<Exchange>> exchanges;
    for (int i = 0; i < 3; ++i) {
      exchanges.push_back(std::make_unique<Exchange>(seat, 200'000, 1));
      EXPECT_TRUE(succeeded(fcclGroupStart()));
      exchanges.back()->send_all(comm, stream);
      exchanges.back()->receive_all(comm, stream);
      EXPECT_TRUE(succeeded(fcclGroupEnd()));
    }
    EXPECT_TRUE(succeeded(fcclStreamSynchronize(stream)));
    for (const auto& exchange : exchanges) EXPECT_EQ(exchange->fault(), "");
  });
}

TEST_P(Groups, of_a_hundred_sends_to_each_peer_arrive_in_order) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat);
    for (const size_t count : {size_t{8}, size_t{9000}}) {
      Exchange exchange(seat, count, 100);
      EXPECT_TRUE(succeeded(fcclGroupStart()));
      exchange.send_all(comm, nullptr);
      exchange.receive_all(comm, nullptr);
      EXPECT_TRUE(succeeded(fcclGroupEnd()));
      EXPECT_EQ(exchange.fault(), "");
    }
  });
}

TEST_P(Groups, nest_and_run_at_the_outermost_end) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat);
    Exchange exchange(seat, 50'000, 1);
    EXPECT_TRUE(succeeded(fcclGroupStart()));
    EXPECT_TRUE(succeeded(fcclGroupStart()));
    exchange.send_all(comm, nullptr);
    EXPECT_TRUE(succeeded(fcclGroupEnd()));
    EXPECT_NE(exchange.fault(), "");
    exchange.receive_all(comm, nullptr);
    EXPECT_TRUE(succeeded(fcclGroupEnd()));
    EXPECT_EQ(exchange.fault(), "");
  });
}

TEST_P(Groups, mix_collectives_and_sends_on_several_streams) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat);
    const TestStream stream;
    Exchange exchange(seat, 30'000, 1);
    const auto gather = trial_of(fcclCollAllGather, 10'000, seat), reduce = trial_of(fcclCollAllReduce, 100'000, seat);
    EXPECT_TRUE(succeeded(fcclGroupStart()));
    EXPECT_TRUE(succeeded(reduce->issue(comm, stream)));
    exchange.receive_all(comm, stream);
    EXPECT_TRUE(succeeded(gather->issue(comm)));
    exchange.send_all(comm, nullptr);
    EXPECT_TRUE(succeeded(fcclGroupEnd()));
    EXPECT_TRUE(succeeded(fcclStreamSynchronize(stream)));
    EXPECT_EQ(gather->fault() + reduce->fault() + exchange.fault(), "");
  });
}

TEST_P(Groups, of_two_communicators_may_stand_in_another_order_on_each_rank) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm first(seat), second(seat);
    for (int i = 0; i < 10; ++i) {
      const auto one = trial_of(fcclCollAllReduce, 20'000, seat, i), other = trial_of(fcclCollAllReduce, 70'000, seat, i);
      const bool turns = seat.rank % 2 == 1;
      EXPECT_TRUE(succeeded(fcclGroupStart()));
      EXPECT_TRUE(succeeded((turns ? other : one)->issue(turns ? second : first)));
      EXPECT_TRUE(succeeded((turns ? one : other)->issue(turns ? first : second)));
      EXPECT_TRUE(succeeded(fcclGroupEnd()));
      EXPECT_EQ(one->fault() + other->fault(), "");
    }
  });
}

TEST_P(Groups, issue_nothing_once_a_call_was_refused) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat);
    const auto trial = trial_of(fcclCollAllReduce, 100, seat);
    EXPECT_TRUE(succeeded(fcclGroupStart()));
    EXPECT_TRUE(succeeded(trial->issue(comm)));
    EXPECT_EQ(fcclSend(nullptr, 1, fcclInt8, 0, comm, nullptr), fcclInvalidArgument);
    EXPECT_EQ(fcclGroupEnd(), fcclInvalidArgument);
    EXPECT_NE(std::string(fcclGetLastError(nullptr)).find("fcclSend: sendbuff is NULL"), std::string::npos)
        << fcclGetLastError(nullptr);
    EXPECT_NE(trial->fault(), "");
    // Neither the communicator nor the next group knows of it.
    const auto next = trial_of(fcclCollAllReduce, 100, seat, 1);
    EXPECT_TRUE(succeeded(fcclGroupStart()));
    EXPECT_TRUE(succeeded(next->issue(comm)));
    EXPECT_TRUE(succeeded(fcclGroupEnd()));
    EXPECT_EQ(next->fault(), "");
  });
}

TEST_P(Groups, end_with_the_failure_of_a_call_and_let_other_communicators_finish) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    if (seat.ranks < 2) return;
    const Comm good(seat), bad(seat);
    // A rank that is still on its way out of init would have the failure there.
    seat.meet();
    const auto trial = trial_of(fcclCollAllReduce, 50'000, seat);
    Parcel wrong({.from = 0, .to = 1, .count = seat.rank == 0 ? size_t{20'000} : size_t{20'001}});
    EXPECT_TRUE(succeeded(fcclGroupStart()));
    if (seat.rank == 0) {
      EXPECT_TRUE(succeeded(wrong.send(bad)));
    }
    if (seat.rank == 1) {
      EXPECT_TRUE(succeeded(wrong.receive(bad)));
    }
    EXPECT_TRUE(succeeded(trial->issue(good)));
    EXPECT_EQ(fcclGroupEnd(), seat.rank < 2 ? fcclInvalidUsage : fcclSuccess);
    EXPECT_EQ(trial->fault(), "");
    seat.meet();
  });
}

TEST_P(Groups, that_nobody_answers_end_at_the_deadline) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    fcclConfig_t config = config_of_tests();
    config.timeoutMs = 300 * kSlowdown;
    const Comm comm(seat, config);
    if (seat.rank == 0 && seat.ranks > 1) {
      Parcel sent({.from = 0, .to = 1, .count = 100'000}), received({.from = 1, .to = 0, .count = 100'000});
      EXPECT_TRUE(succeeded(fcclGroupStart()));
      EXPECT_TRUE(succeeded(sent.send(comm)));
      EXPECT_TRUE(succeeded(received.receive(comm)));
      EXPECT_EQ(fcclGroupEnd(), fcclTimeout);
    }
    seat.meet();
  });
}

TEST_P(Groups, that_are_simulated_run_nothing) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat);
    const auto trial = trial_of(fcclCollAllReduce, 1'000'000, seat);
    fcclSimInfo_t info = FCCL_SIM_INFO_INITIALIZER;
    EXPECT_TRUE(succeeded(fcclGroupStart()));
    EXPECT_TRUE(succeeded(trial->issue(comm)));
    EXPECT_TRUE(succeeded(fcclGroupSimulateEnd(&info)));
    EXPECT_GT(info.estimatedTime, 100);
    EXPECT_LT(info.estimatedTime, 1'000'000);
    EXPECT_NE(trial->fault(), "");
    EXPECT_EQ(try_collective({.collective = fcclCollAllReduce, .dtype = fcclFloat32, .count = 5}, seat.rank, seat.ranks, comm),
              "");
  });
}

TEST_P(Groups, make_communicators_together) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat);
    const fcclUniqueId first = agree_on_id(seat);
    const fcclUniqueId second = agree_on_id(seat);
    fcclComm_t one = nullptr, other = nullptr, part = nullptr;
    EXPECT_TRUE(succeeded(fcclGroupStart()));
    EXPECT_TRUE(succeeded(fcclCommInitRank(&one, seat.ranks, first, seat.rank)));
    EXPECT_TRUE(succeeded(fcclCommInitRank(&other, seat.ranks, second, seat.ranks - 1 - seat.rank)));
    EXPECT_TRUE(succeeded(fcclCommSplit(comm, 0, -seat.rank, &part, nullptr)));
    EXPECT_TRUE(succeeded(fcclGroupEnd()));
    const Comm made(one), turned(other), split(part);
    for (const auto& [each, rank] : {std::pair<fcclComm_t, int>{made, seat.rank},
                                     {turned, seat.ranks - 1 - seat.rank},
                                     {split, seat.ranks - 1 - seat.rank}})
      EXPECT_EQ(try_collective({.collective = fcclCollAllGather, .dtype = fcclInt32, .count = 100}, rank, seat.ranks, each),
                "");
  });
}

INSTANTIATE_TEST_SUITE_P(As, Groups, ::testing::ValuesIn(sizes(1, 3)), name_of_size);
INSTANTIATE_TEST_SUITE_P(MoreThanCores, Groups, ::testing::Values(Size{RanksAs::threads, 5}), name_of_size);

TEST(Group, that_was_not_started_cannot_end) {
  EXPECT_EQ(fcclGroupEnd(), fcclInvalidUsage);
  fcclSimInfo_t info = FCCL_SIM_INFO_INITIALIZER;
  EXPECT_EQ(fcclGroupSimulateEnd(&info), fcclInvalidUsage);
}

TEST(Group, of_nothing_ends_well) {
  EXPECT_TRUE(succeeded(fcclGroupStart()));
  EXPECT_TRUE(succeeded(fcclGroupEnd()));
}

// Communicators of all ranks, in one thread.
class InitAll : public ::testing::TestWithParam<int> {
 protected:
  InitAll() : comms(static_cast<size_t>(GetParam())) {
    EXPECT_TRUE(succeeded(fcclCommInitAll(comms.data(), ranks(), nullptr)));
  }
  void TearDown() override {
    for (const fcclComm_t comm : comms) EXPECT_TRUE(succeeded(fcclCommDestroy(comm)));
  }
  static int ranks() { return GetParam(); }

  std::vector<fcclComm_t> comms;
};

TEST_P(InitAll, makes_the_rank_of_each_handle) {
  for (int rank = 0; rank < ranks(); ++rank) {
    int number = -1, count = -1;
    EXPECT_TRUE(succeeded(fcclCommUserRank(comms[rank], &number)));
    EXPECT_TRUE(succeeded(fcclCommCount(comms[rank], &count)));
    EXPECT_EQ(number, rank);
    EXPECT_EQ(count, ranks());
  }
}

TEST_P(InitAll, lets_one_thread_run_collectives_of_all_ranks) {
  for (const fcclColl_t collective : {fcclCollAllReduce, fcclCollAllGather, fcclCollReduceScatter, fcclCollBroadcast})
    for (const size_t count : {size_t{10}, size_t{300'000}}) {
      std::vector<std::unique_ptr<Trial>> trials;
      EXPECT_TRUE(succeeded(fcclGroupStart()));
      for (int rank = 0; rank < ranks(); ++rank) {
        trials.push_back(
            std::make_unique<Trial>(Recipe{.collective = collective, .dtype = fcclFloat32, .count = count}, rank, ranks()));
        EXPECT_TRUE(succeeded(trials.back()->issue(comms[rank])));
      }
      EXPECT_TRUE(succeeded(fcclGroupEnd()));
      for (const auto& trial : trials) EXPECT_EQ(trial->fault(), "");
    }
}

// Makes tagged sends of one group, received in one group in the reverse order. Returns the seconds of the processor that this
// took: two ranks that share one wait for it as often as their notices fill a window.
double seconds_of_group(const Comm& comm, const Seat& seat, int sends, int round) {
  std::vector<int> given(static_cast<size_t>(sends)), got(given.size(), -1);
  EXPECT_TRUE(succeeded(fcclBarrier(comm, nullptr)));
  const double began = processor_seconds();
  EXPECT_TRUE(succeeded(fcclGroupStart()));
  for (int i = 0; i < sends; ++i) {
    const int tag = seat.rank == 0 ? i : sends - 1 - i;
    const auto place = static_cast<size_t>(tag);
    given[place] = tag * 7 + round;
    if (seat.rank == 0) {
      EXPECT_TRUE(succeeded(fcclSendTagged(&given[place], 1, fcclInt32, 1, tag, comm, nullptr)));
    } else {
      EXPECT_TRUE(succeeded(fcclRecvTagged(&got[place], 1, fcclInt32, 0, tag, nullptr, comm, nullptr)));
    }
  }
  EXPECT_TRUE(succeeded(fcclGroupEnd()));
  const double seconds = processor_seconds() - began;
  for (int i = 0; seat.rank == 1 && i < sends; ++i) EXPECT_EQ(got[static_cast<size_t>(i)], i * 7 + round);
  return seconds;
}

constexpr int kFew = 4000 / kSlowdown;

TEST(LargeGroup, of_four_times_as_many_sends_takes_at_most_five_times_as_long) {
  run_ranks({RanksAs::threads, 2}, [](const Seat& seat) {
    const Comm comm(seat);
    // All ranks try equally often: the first one says when it was enough. The square of four would be sixteen. On a busy
    // machine the many take ten seconds, since each window of notices waits for two turns on a processor.
    double few = 1e9, many = 1e9;
    bool is_enough = false;
    for (int attempt = 0; attempt < 40 && !is_enough; ++attempt) {
      few = std::min(few, seconds_of_group(comm, seat, kFew, attempt));
      many = std::min(many, seconds_of_group(comm, seat, 4 * kFew, attempt));
      is_enough = many <= 5 * few;
      EXPECT_TRUE(succeeded(fcclBroadcast(&is_enough, &is_enough, 1, fcclUint8, 0, comm, nullptr)));
    }
    EXPECT_TRUE(is_enough);
  });
}

TEST(LongLargeGroup, whose_peer_is_late_says_so_in_one_line_of_the_log) {
  ::testing::internal::CaptureStderr();
  run_ranks({RanksAs::threads, 2}, [](const Seat& seat) {
    const Comm comm(seat);
    EXPECT_TRUE(succeeded(fcclGroupStart()));
    std::array<int, 300> values{};
    for (int& value : values) {
      const int tag = static_cast<int>(&value - values.data());
      EXPECT_TRUE(succeeded(seat.rank == 0 ? fcclSendTagged(&value, 1, fcclInt32, 1, tag, comm, nullptr)
                                           : fcclRecvTagged(&value, 1, fcclInt32, 0, tag, nullptr, comm, nullptr)));
    }
    if (seat.rank == 0) std::this_thread::sleep_for(std::chrono::milliseconds(6500));
    EXPECT_TRUE(succeeded(fcclGroupEnd()));
  });
  const std::string log = ::testing::internal::GetCapturedStderr();
  size_t lines = 0;
  for (size_t at = log.find(" in Recv of"); at != std::string::npos; at = log.find(" in Recv of", at + 1)) ++lines;
  EXPECT_EQ(lines, 1u) << log;
}

TEST_P(InitAll, lets_one_thread_send_between_its_ranks) {
  Parcels sent, received;
  EXPECT_TRUE(succeeded(fcclGroupStart()));
  for (int from = 0; from < ranks(); ++from)
    for (int to = 0; to < ranks(); ++to) {
      sent.push_back(std::make_unique<Parcel>(Route{.from = from, .to = to, .count = 200'000}));
      received.push_back(std::make_unique<Parcel>(Route{.from = from, .to = to, .count = 200'000}));
      EXPECT_TRUE(succeeded(received.back()->receive(comms[to])));
      EXPECT_TRUE(succeeded(sent.back()->send(comms[from])));
    }
  EXPECT_TRUE(succeeded(fcclGroupEnd()));
  for (const auto& parcel : received) EXPECT_EQ(parcel->fault(), "");
}

INSTANTIATE_TEST_SUITE_P(Of, InitAll, ::testing::Values(1, 2, 5),
                         [](const auto& info) { return std::to_string(info.param) + "_ranks"; });

TEST(InitAllRefusal, of_no_ranks_or_no_handles_says_why) {
  fcclComm_t comm = nullptr;
  EXPECT_EQ(fcclCommInitAll(&comm, 0, nullptr), fcclInvalidArgument);
  EXPECT_EQ(fcclCommInitAll(nullptr, 2, nullptr), fcclInvalidArgument);
}

}  // namespace
}  // namespace fccl::core::testing
