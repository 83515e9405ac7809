// Host streams: order and completion.
#include <memory>
#include <numeric>
#include <thread>

#include "processes/size.h"
#include "processes/test_stream.h"
#include "processes/trial.h"

namespace fccl::core::testing {
namespace {

using namespace std::chrono_literals;

class Streams : public ::testing::TestWithParam<Size> {};

TEST_P(Streams, run_calls_in_the_order_of_issue) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat);
    const TestStream stream;
    std::mt19937_64 generator(3);
    std::vector<std::unique_ptr<Trial>> trials;
    for (int i = 0; i < 60; ++i)
      trials.push_back(std::make_unique<Trial>(random_recipe(generator, seat.ranks, 50'000, i), seat.rank, seat.ranks));
    for (const auto& trial : trials) EXPECT_TRUE(succeeded(trial->issue(comm, stream)));
    EXPECT_TRUE(succeeded(fcclStreamSynchronize(stream)));
    for (const auto& trial : trials) EXPECT_EQ(trial->fault(), "");
  });
}

TEST_P(Streams, take_a_blocking_call_behind_what_occupies_its_lane) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat);
    const TestStream stream;
    for (int round = 0; round < 5; ++round) {
      const auto queued = trial_of(fcclCollAllGather, 300'000, seat, round);
      const auto blocking = trial_of(fcclCollAllGather, 5, seat, round);
      if (seat.rank == seat.ranks - 1) std::this_thread::sleep_for(5ms);
      EXPECT_TRUE(succeeded(queued->issue(comm, stream)));
      EXPECT_TRUE(succeeded(blocking->issue(comm)));
      EXPECT_EQ(blocking->fault(), "");
      EXPECT_EQ(queued->fault(), "");
      // The worker gives the lane on before it counts the queued call as ended.
      EXPECT_TRUE(succeeded(fcclStreamSynchronize(stream)));
    }
  });
}

TEST_P(Streams, are_in_progress_until_the_last_rank_has_come) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat);
    const TestStream stream;
    EXPECT_EQ(fcclStreamQuery(stream), fcclSuccess);
    const auto trial = trial_of(fcclCollAllReduce, 1000, seat);
    const bool late = seat.rank == seat.ranks - 1;
    if (!late) {
      EXPECT_TRUE(succeeded(trial->issue(comm, stream)));
    }
    if (!late) {
      EXPECT_EQ(fcclStreamQuery(stream), fcclInProgress);
    }
    seat.meet();
    if (late) {
      EXPECT_TRUE(succeeded(trial->issue(comm, stream)));
    }
    while (fcclStreamQuery(stream) == fcclInProgress) std::this_thread::sleep_for(100us);
    EXPECT_TRUE(succeeded(fcclStreamQuery(stream)));
    EXPECT_EQ(trial->fault(), "");
  });
}

TEST_P(Streams, are_waited_for_up_to_a_place) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat);
    const TestStream stream;
    const auto first = trial_of(fcclCollAllReduce, 1000, seat), second = trial_of(fcclCollAllReduce, 1000, seat, 1);
    unsigned long long behind_first = 77;
    EXPECT_TRUE(succeeded(fcclStreamGetPosition(stream, &behind_first)));
    EXPECT_EQ(behind_first, 0);
    EXPECT_TRUE(succeeded(first->issue(comm, stream)));
    EXPECT_TRUE(succeeded(fcclStreamGetPosition(stream, &behind_first)));
    EXPECT_EQ(behind_first, 1);
    const bool late = seat.rank == seat.ranks - 1;
    if (!late) {
      EXPECT_TRUE(succeeded(second->issue(comm, stream)));
    }
    EXPECT_TRUE(succeeded(fcclStreamSynchronizeTo(stream, behind_first, -1)));
    EXPECT_EQ(first->fault(), "");
    if (!late) {
      EXPECT_EQ(fcclStreamSynchronizeTo(stream, 2, 20), fcclInProgress);
    }
    seat.meet();
    if (late) {
      EXPECT_TRUE(succeeded(second->issue(comm, stream)));
    }
    EXPECT_TRUE(succeeded(fcclStreamSynchronizeTo(stream, 2, -1)));
    EXPECT_EQ(second->fault(), "");
    EXPECT_EQ(fcclStreamSynchronizeTo(stream, 3, -1), fcclInvalidArgument);
    EXPECT_EQ(fcclStreamGetPosition(stream, nullptr), fcclInvalidArgument);
  });
}

TEST_P(Streams, run_a_host_function_when_all_before_it_is_done) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    struct Record {
      const Trial* trial;
      std::vector<std::string>* faults;
    };
    const Comm comm(seat);
    const TestStream stream;
    std::vector<std::unique_ptr<Trial>> trials;
    std::vector<std::string> faults;
    std::vector<Record> records(8);
    for (int i = 0; i < 8; ++i) {
      trials.push_back(trial_of(fcclCollAllReduce, 50'000 * (i % 2) + 3, seat, i));
      records[i] = {trials[i].get(), &faults};
      if (seat.rank == i % seat.ranks) std::this_thread::sleep_for(2ms);
      EXPECT_TRUE(succeeded(trials[i]->issue(comm, stream)));
      const auto look = [](void* data) {
        const auto* record = static_cast<Record*>(data);
        record->faults->push_back(record->trial->fault());
      };
      EXPECT_TRUE(succeeded(fcclLaunchHostFunc(stream, look, &records[i])));
    }
    EXPECT_TRUE(succeeded(fcclStreamSynchronize(stream)));
    EXPECT_EQ(faults, std::vector<std::string>(8));
  });
}

TEST_P(Streams, run_host_functions_in_order) {
  run_ranks(GetParam().launch(), [](const Seat&) {
    struct Step {
      std::vector<int>* order;
      int number;
      static void run(void* data) {
        const auto* step = static_cast<Step*>(data);
        step->order->push_back(step->number);
      }
    };
    std::vector<int> order, wanted(100);
    std::iota(wanted.begin(), wanted.end(), 0);
    std::vector<Step> steps;
    for (const int number : wanted) steps.push_back({&order, number});
    const TestStream stream;
    for (Step& step : steps) EXPECT_TRUE(succeeded(fcclLaunchHostFunc(stream, Step::run, &step)));
    EXPECT_TRUE(succeeded(fcclStreamSynchronize(stream)));
    EXPECT_EQ(order, wanted);
  });
}

TEST_P(Streams, are_empty_and_right_after_finalize) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat);
    const TestStream stream;
    const auto trial = trial_of(fcclCollReduceScatter, 400'000, seat);
    EXPECT_TRUE(succeeded(trial->issue(comm, stream)));
    EXPECT_TRUE(succeeded(fcclCommFinalize(comm)));
    EXPECT_EQ(trial->fault(), "");
    EXPECT_EQ(fcclBarrier(comm, nullptr), fcclInvalidUsage);
  });
}

TEST_P(Streams, are_served_to_the_end_when_their_communicator_is_destroyed) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const TestStream stream;
    Comm comm(seat);
    const auto trial = trial_of(fcclCollAllReduce, 400'000, seat);
    EXPECT_TRUE(succeeded(trial->issue(comm, stream)));
    EXPECT_TRUE(succeeded(fcclCommDestroy(comm.release())));
    EXPECT_TRUE(succeeded(fcclStreamSynchronize(stream)));
    EXPECT_EQ(trial->fault(), "");
  });
}

TEST_P(Streams, keep_their_first_failure_and_run_the_host_functions_behind_it) {
  // The first two of more ranks could fail before the last one has issued its call.
  run_ranks({GetParam().as, 2}, [](const Seat& seat) {
    const Comm comm(seat);
    const TestStream stream;
    const auto trial = trial_of(fcclCollAllReduce, seat.rank == 0 ? 10 : 11, seat);
    EXPECT_TRUE(succeeded(trial->issue(comm, stream)));
    bool ran = false;
    EXPECT_TRUE(succeeded(fcclLaunchHostFunc(stream, [](void* data) { *static_cast<bool*>(data) = true; }, &ran)));
    EXPECT_EQ(fcclStreamSynchronize(stream), fcclInvalidUsage);
    EXPECT_TRUE(ran);
    EXPECT_EQ(fcclStreamQuery(stream), fcclInvalidUsage);
  });
}

INSTANTIATE_TEST_SUITE_P(As, Streams, ::testing::ValuesIn(sizes(2, 4)), name_of_size);

TEST(HostFunction, without_a_stream_runs_at_once) {
  bool ran = false;
  EXPECT_TRUE(succeeded(fcclLaunchHostFunc(nullptr, [](void* data) { *static_cast<bool*>(data) = true; }, &ran)));
  EXPECT_TRUE(ran);
}

}  // namespace
}  // namespace fccl::core::testing
