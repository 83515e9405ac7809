// Lanes and communicators beside each other: what holds up one holds up no other, in whatever order the ranks come to them.
#include <array>
#include <atomic>
#include <deque>
#include <memory>
#include <thread>

#include "processes/size.h"
#include "processes/test_stream.h"
#include "processes/trial.h"

namespace fccl::core::testing {
namespace {

// Keeps the worker in a host function until it is opened.
class Gate {
 public:
  void close(fcclStream_t stream) {
    EXPECT_TRUE(succeeded(fcclLaunchHostFunc(stream, [](void* gate) { static_cast<Gate*>(gate)->open_.wait(false); }, this)));
  }
  void open() {
    open_.store(true);
    open_.notify_all();
  }

 private:
  std::atomic<bool> open_{false};
};

class Lanes : public ::testing::TestWithParam<Size> {};

// Rank 0's first call is behind a barrier that nobody else enters until the second call is done everywhere.
void expect_second_ends_first(const Seat& seat, fcclColl_t first_kind, fcclColl_t second_kind) {
  const Comm comm(seat), barrier(seat);
  const TestStream of_first, of_second;
  const auto first = trial_of(first_kind, 100'000, seat), second = trial_of(second_kind, 100'000, seat);
  if (seat.rank == 0) {
    EXPECT_TRUE(succeeded(fcclBarrier(barrier, of_first)));
  }
  EXPECT_TRUE(succeeded(first->issue(comm, of_first)));
  EXPECT_TRUE(succeeded(second->issue(comm, of_second)));
  EXPECT_TRUE(succeeded(fcclStreamSynchronize(of_second)));
  EXPECT_EQ(second->fault(), "");
  EXPECT_EQ(fcclStreamQuery(of_first), fcclInProgress);
  seat.meet();
  if (seat.rank != 0) {
    EXPECT_TRUE(succeeded(fcclBarrier(barrier, nullptr)));
  }
  EXPECT_TRUE(succeeded(fcclStreamSynchronize(of_first)));
  EXPECT_EQ(first->fault(), "");
}

TEST_P(Lanes, end_a_reduction_while_a_gather_issued_before_it_is_held_back_on_one_rank) {
  run_ranks(GetParam().launch(),
            [](const Seat& seat) { expect_second_ends_first(seat, fcclCollAllGather, fcclCollReduceScatter); });
}

TEST_P(Lanes, end_a_gather_while_a_reduction_issued_before_it_is_held_back_on_one_rank) {
  run_ranks(GetParam().launch(),
            [](const Seat& seat) { expect_second_ends_first(seat, fcclCollReduceScatter, fcclCollAllGather); });
}

TEST_P(Lanes, end_an_all_to_all_while_a_gather_issued_before_it_is_held_back_on_one_rank) {
  run_ranks(GetParam().launch(), [](const Seat& seat) { expect_second_ends_first(seat, fcclCollAllGather, fcclCollAlltoAll); });
}

TEST_P(Lanes, end_a_blocking_reduction_while_a_host_function_holds_the_gather_before_it) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat);
    const TestStream gathers;
    const auto gather = trial_of(fcclCollAllGather, 100'000, seat), reduction = trial_of(fcclCollReduceScatter, 100'000, seat);
    Gate gate;
    if (seat.rank == 0) gate.close(gathers);
    EXPECT_TRUE(succeeded(gather->issue(comm, gathers)));
    EXPECT_TRUE(succeeded(reduction->issue(comm)));
    EXPECT_EQ(reduction->fault(), "");
    EXPECT_EQ(fcclStreamQuery(gathers), fcclInProgress);
    seat.meet();
    gate.open();
    EXPECT_TRUE(succeeded(fcclStreamSynchronize(gathers)));
    EXPECT_EQ(gather->fault(), "");
  });
}

TEST_P(Lanes, take_a_gather_and_a_reduction_of_one_communicator_on_two_streams) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat);
    const TestStream gathers, reductions;
    for (int round = 0; round < 10; ++round) {
      const auto gather = trial_of(fcclCollAllGather, 200'001, seat, round);
      const auto reduction = trial_of(fcclCollReduceScatter, 100'003, seat, round);
      EXPECT_TRUE(succeeded(gather->issue(comm, gathers)));
      EXPECT_TRUE(succeeded(reduction->issue(comm, reductions)));
      EXPECT_TRUE(succeeded(fcclStreamSynchronize(gathers)));
      EXPECT_TRUE(succeeded(fcclStreamSynchronize(reductions)));
      EXPECT_EQ(gather->fault(), "");
      EXPECT_EQ(reduction->fault(), "");
    }
  });
}

INSTANTIATE_TEST_SUITE_P(As, Lanes, ::testing::ValuesIn(sizes(2, 4)), name_of_size);

class Communicators : public ::testing::TestWithParam<Size> {};

TEST_P(Communicators, on_streams_in_opposite_order_do_not_deadlock) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm one(seat), other(seat);
    const TestStream streams[2];
    const bool swapped = seat.rank % 2 == 1;
    for (int round = 0; round < 20; ++round) {
      const auto of_one = trial_of(fcclCollAllReduce, 100'001, seat, round);
      const auto of_other = trial_of(fcclCollAllReduce, 70'001, seat, round);
      EXPECT_TRUE(succeeded(swapped ? of_other->issue(other, streams[0]) : of_one->issue(one, streams[0])));
      EXPECT_TRUE(succeeded(swapped ? of_one->issue(one, streams[1]) : of_other->issue(other, streams[1])));
      for (const fcclStream_t stream : {fcclStream_t{streams[0]}, fcclStream_t{streams[1]}})
        EXPECT_TRUE(succeeded(fcclStreamSynchronize(stream)));
      EXPECT_EQ(of_one->fault(), "");
      EXPECT_EQ(of_other->fault(), "");
    }
  });
}

TEST_P(Communicators, serve_blocking_calls_while_the_worker_waits_for_another_one) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm blocking(seat), waiting(seat);
    const TestStream stream;
    const auto late = trial_of(fcclCollAllReduce, 100'000, seat);
    const bool last = seat.rank == seat.ranks - 1;
    if (!last) {
      EXPECT_TRUE(succeeded(late->issue(waiting, stream)));
    }
    std::mt19937_64 generator(5);
    for (int i = 0; i < 20; ++i)
      EXPECT_EQ(try_collective(random_recipe(generator, seat.ranks, 50'000, i), seat.rank, seat.ranks, blocking), "");
    EXPECT_EQ(fcclStreamQuery(stream), last ? fcclSuccess : fcclInProgress);
    seat.meet();
    if (last) {
      EXPECT_TRUE(succeeded(late->issue(waiting, stream)));
    }
    EXPECT_TRUE(succeeded(fcclStreamSynchronize(stream)));
    EXPECT_EQ(late->fault(), "");
  });
}

// Calls of two communicators, one blocking and one on a stream, whichever comes first on this rank.
void alternate(const Seat& seat, fcclComm_t blocking, fcclComm_t streaming) {
  const TestStream stream;
  std::mt19937_64 order(seat.rank);
  for (int round = 0; round < 20; ++round) {
    const auto queued = trial_of(fcclCollReduceScatter, 30'001, seat, round);
    const auto waited = trial_of(fcclCollAllGather, round % 2 == 0 ? 20'001 : 3, seat, round);
    const bool stream_first = order() % 2 == 0;
    if (stream_first) {
      EXPECT_TRUE(succeeded(queued->issue(streaming, stream)));
    }
    EXPECT_TRUE(succeeded(waited->issue(blocking)));
    if (!stream_first) {
      EXPECT_TRUE(succeeded(queued->issue(streaming, stream)));
    }
    EXPECT_EQ(waited->fault(), "");
    EXPECT_TRUE(succeeded(fcclStreamSynchronize(stream)));
    EXPECT_EQ(queued->fault(), "");
  }
}

TEST_P(Communicators, of_several_threads_that_block_and_use_streams_do_not_deadlock) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    constexpr int kThreads = 3;
    std::vector<std::unique_ptr<Comm>> comms;
    for (int i = 0; i < 2 * kThreads; ++i) comms.push_back(std::make_unique<Comm>(seat));
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) threads.emplace_back([&, i] { alternate(seat, *comms[2 * i], *comms[2 * i + 1]); });
    for (std::thread& thread : threads) thread.join();
  });
}

// One round of calls, in an order that is right for every rank: a call is behind calls of a smaller index only, in its stream
// and in its communicator. Apart from that each rank chooses streams and order as it likes.
class Shuffle {
 public:
  static constexpr int kComms = 8, kStreams = 4, kCalls = 24;

  Shuffle(const Seat& seat, int round) : generator_(1000 * round + seat.rank) {
    std::mt19937_64 equal_on_all_ranks(round);
    for (int call = 0; call < kCalls; ++call) {
      trials_.push_back(
          std::make_unique<Trial>(random_recipe(equal_on_all_ranks, seat.ranks, 10'000, round), seat.rank, seat.ranks));
      queues_[generator_() % kStreams].push_back(call);
    }
  }

  void issue(const std::vector<std::unique_ptr<Comm>>& comms, const std::array<TestStream, kStreams>& streams) {
    for (int left = kCalls; left > 0;) {
      const size_t stream = generator_() % kStreams;
      std::deque<int>& queue = queues_[stream];
      if (queue.empty() || queue.front() / kComms != issued_[queue.front() % kComms]) continue;
      const int call = queue.front();
      EXPECT_TRUE(succeeded(trials_[call]->issue(*comms[call % kComms], streams[stream])));
      if (generator_() % 4 == 0) {
        ++launched_;
        EXPECT_TRUE(
            succeeded(fcclLaunchHostFunc(streams[stream], [](void* ran) { ++*static_cast<std::atomic<int>*>(ran); }, &ran_)));
      }
      ++issued_[call % kComms];
      queue.pop_front();
      --left;
    }
  }

  void expect_right() const {
    for (const auto& trial : trials_) EXPECT_EQ(trial->fault(), "");
    EXPECT_EQ(ran_, launched_);
  }

 private:
  std::mt19937_64 generator_;
  std::vector<std::unique_ptr<Trial>> trials_;
  std::array<std::deque<int>, kStreams> queues_;
  std::array<int, kComms> issued_{};
  int launched_ = 0;
  std::atomic<int> ran_{0};  // several threads run the functions of several streams
};

TEST_P(Communicators, eight_of_them_on_four_streams_in_random_orders_do_not_deadlock) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    std::vector<std::unique_ptr<Comm>> comms;
    for (int i = 0; i < Shuffle::kComms; ++i) comms.push_back(std::make_unique<Comm>(seat));
    const std::array<TestStream, Shuffle::kStreams> streams;
    for (int round = 0; round < 20; ++round) {
      Shuffle shuffle(seat, round);
      shuffle.issue(comms, streams);
      for (const TestStream& stream : streams) EXPECT_TRUE(succeeded(fcclStreamSynchronize(stream)));
      shuffle.expect_right();
    }
  });
}

INSTANTIATE_TEST_SUITE_P(As, Communicators, ::testing::ValuesIn(sizes(2, 4)), name_of_size);

}  // namespace
}  // namespace fccl::core::testing
