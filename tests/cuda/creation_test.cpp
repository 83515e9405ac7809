// Communicators of CUDA memory made of others while their user goes on, and all ranks of one thread's GPUs.
#include <array>
#include <functional>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "cuda/cuda_ranks.h"

namespace fccl::core::testing {
namespace {

using namespace std::chrono_literals;

constexpr int kSeats = 3;
constexpr int kVictimOfShrink = 2;

// A call that makes a communicator of another one, of the first `parents` seats, for the first `ranks` seats.
struct Derivation {
  const char* name;
  int parents;
  int ranks;
  bool fails_the_parent;  // the parent fails if the call ends before the others have come
  // `parent` is null on a new rank.
  std::function<fcclResult_t(const Seat& seat, fcclComm_t parent, fcclComm_t* made, fcclConfig_t* config)> call;
};

const Derivation kDerivations[] = {
    {"split", 3, 3, true,
     [](const Seat& seat, fcclComm_t parent, fcclComm_t* made, fcclConfig_t* config) {
       return fcclCommSplit(parent, 4, seat.rank, made, config);
     }},
    {"shrink", 3, 2, false,
     [](const Seat&, fcclComm_t parent, fcclComm_t* made, fcclConfig_t* config) {
       std::array excluded{kVictimOfShrink};
       return fcclCommShrink(parent, excluded.data(), 1, made, config, FCCL_SHRINK_DEFAULT);
     }},
    {"grow", 2, 3, true,
     [](const Seat& seat, fcclComm_t parent, fcclComm_t* made, fcclConfig_t* config) {
       const fcclUniqueId id = seat.board.id;
       return fcclCommGrow(parent, kSeats, &id, parent == nullptr ? seat.rank : -1, made, config);
     }},
};

// Each rank gives its number and an index; the sum of all must come.
std::string fault_of_sum(CudaSeat& seat, fcclComm_t comm, int ranks, size_t count) {
  int rank = -1;
  if (fcclCommUserRank(comm, &rank) != fcclSuccess) return "no rank";
  std::vector<int32_t> given(count), expected(count), taken(count, -7);
  for (size_t i = 0; i < count; ++i) {
    given[i] = (rank + 1) * 1000 + static_cast<int32_t>(i % 97);
    expected[i] = ranks * (ranks + 1) / 2 * 1000 + ranks * static_cast<int32_t>(i % 97);
  }
  const size_t bytes = count * sizeof(int32_t);
  std::byte *const from = seat.take(bytes), *const to = seat.take(bytes);
  seat.gpu().write(from, std::as_bytes(std::span(given)));
  const fcclResult_t result = fcclAllReduce(from, to, count, fcclInt32, fcclSum, comm, seat.stream().native);
  seat.gpu().synchronize(seat.stream());
  if (result != fcclSuccess) return fcclGetLastError(nullptr);
  fcclResult_t state = fcclSuccess;
  if (fcclCommGetAsyncError(comm, &state); state != fcclSuccess) return fcclGetLastError(comm);
  seat.gpu().read(to, std::as_writable_bytes(std::span(taken)));
  return taken == expected ? "" : "wrong sum";
}

std::string fault_of(CudaSeat& seat, fcclComm_t comm, int ranks) {
  for (const size_t count : {5, 9'001})
    if (std::string fault = fault_of_sum(seat, comm, ranks, count); !fault.empty()) return fault;
  return "";
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

class CudaDerivation : public ::testing::TestWithParam<std::tuple<int, std::string>> {
 public:
  static const Derivation& derivation() { return kDerivations[std::get<0>(GetParam())]; }
  static OnGpus on() { return {.ranks = kSeats, .gpus = kSeats}; }

  // The parent, null on a seat that it has not; and the id, if it will be asked for. Collective.
  static fcclComm_t make_ready(const CudaSeat& seat) {
    const fcclUniqueId id = agree_on_id(seat.seat());
    fcclConfig_t config = config_of_cuda_tests();
    fcclComm_t parent = nullptr;
    if (seat.rank() < derivation().parents) {
      EXPECT_TRUE(succeeded(fcclCommInitRankConfig(&parent, derivation().parents, id, seat.rank(), &config)));
    }
    seat.meet();
    if (seat.rank() == 0 && derivation().parents < kSeats) {
      EXPECT_TRUE(succeeded(fcclCommGetUniqueId(parent, &seat.seat().board.id)));
    }
    seat.meet();
    return parent;
  }

  static fcclComm_t begin(const CudaSeat& seat, fcclComm_t parent) {
    fcclConfig_t config = config_of_cuda_tests();
    config.blocking = 0;
    fcclComm_t made = nullptr;
    EXPECT_EQ(derivation().call(seat.seat(), parent, &made, &config), fcclInProgress) << fcclGetLastError(nullptr);
    EXPECT_NE(made, nullptr);
    return made;
  }

 private:
  const Setting path_{"FCCL_CUDA_PATH", std::get<1>(GetParam())};
  const Setting buffer_{"FCCL_CUDA_BUFFER", "4096"};
};

TEST_P(CudaDerivation, makes_a_communicator_that_works_while_the_old_one_takes_no_calls) {
  run_on_gpus(on(), [](CudaSeat& seat) {
    const Comm parent(make_ready(seat));
    fcclComm_t made = nullptr;
    if (seat.rank() == 0) {
      made = begin(seat, parent);
      EXPECT_EQ(state_of(made), fcclInProgress);
      std::byte* const here = seat.take(8);
      EXPECT_EQ(fcclAllReduce(here, here, 2, fcclInt32, fcclSum, parent, seat.stream().native), fcclInvalidUsage);
      EXPECT_EQ(fcclSend(here, 2, fcclInt32, 1, parent, seat.stream().native), fcclInvalidUsage);
      EXPECT_NE(std::string(fcclGetLastError(nullptr)).find("still being made of this one"), std::string::npos)
          << fcclGetLastError(nullptr);
    }
    seat.meet();
    if (seat.rank() < derivation().ranks) {
      if (seat.rank() != 0) made = begin(seat, parent);
      const Comm comm(made);
      EXPECT_EQ(await_end(comm), fcclSuccess) << fcclGetLastError(comm);
      EXPECT_EQ(fault_of(seat, comm, derivation().ranks), "");
    }
    seat.meet();
    if (seat.rank() < derivation().parents) {
      EXPECT_EQ(fault_of(seat, parent, derivation().parents), "");
    }
    seat.meet();
  });
}

TEST_P(CudaDerivation, lets_the_old_one_be_destroyed_meanwhile) {
  run_on_gpus(on(), [](CudaSeat& seat) {
    fcclComm_t parent = make_ready(seat);
    fcclComm_t made = nullptr;
    if (seat.rank() < derivation().ranks) made = begin(seat, parent);
    if (seat.rank() < 2) fcclCommDestroy(parent);
    if (made != nullptr) {
      const Comm comm(made);
      EXPECT_EQ(await_end(comm), fcclSuccess) << fcclGetLastError(comm);
      EXPECT_EQ(fault_of(seat, comm, derivation().ranks), "");
      seat.meet();
    } else {
      seat.meet();
    }
    if (seat.rank() == 2) fcclCommDestroy(parent);
  });
}

TEST_P(CudaDerivation, that_is_ended_while_others_have_not_come_ends_soon) {
  run_on_gpus(on(), [](CudaSeat& seat) {
    const Comm parent(make_ready(seat));
    if (seat.rank() == 0) {
      fcclComm_t made = begin(seat, parent);
      std::this_thread::sleep_for(30ms);
      const int64_t begin = now_ns();
      fcclCommDestroy(made);
      EXPECT_TRUE(in_time(begin, 1500));
    }
    seat.meet();
    if (seat.rank() < derivation().parents) {
      if (derivation().fails_the_parent) {
        EXPECT_EQ(state_of(parent), fcclAborted);
      } else {
        EXPECT_EQ(fault_of(seat, parent, derivation().parents), "");
      }
    }
    seat.meet();
  });
}

INSTANTIATE_TEST_SUITE_P(Of, CudaDerivation,
                         ::testing::Combine(::testing::Range(0, 3), ::testing::Values("blocking", "bounce")),
                         [](const auto& each) {
                           return std::string(kDerivations[std::get<0>(each.param)].name) + "_by_" + std::get<1>(each.param);
                         });

// By bounce alone: by the blocking path the call itself would wait.
TEST(CudaShrink, that_is_ended_while_the_gpu_has_not_come_to_earlier_calls_ends_soon_and_leaves_the_old_one_good) {
  const Setting path("FCCL_CUDA_PATH", "bounce");
  run_on_gpus({.ranks = kSeats, .gpus = kSeats}, [](CudaSeat& seat) {
    const Comm parent(seat.seat(), config_of_cuda_tests());
    EXPECT_EQ(fault_of(seat, parent, kSeats), "");
    const Recipe recipe{.collective = fcclCollAllReduce, .dtype = fcclInt32, .count = 500};
    CudaTrial trial(recipe, seat);
    if (seat.rank() == 0) {
      seat.hold();
      EXPECT_TRUE(succeeded(trial.issue(parent)));
      fcclConfig_t config = config_of_cuda_tests();
      config.blocking = 0;
      fcclComm_t made = nullptr;
      std::array excluded{kVictimOfShrink};
      EXPECT_EQ(fcclCommShrink(parent, excluded.data(), 1, &made, &config, FCCL_SHRINK_DEFAULT), fcclInProgress);
      std::this_thread::sleep_for(30ms);
      EXPECT_EQ(state_of(made), fcclInProgress);
      const int64_t begin = now_ns();
      fcclCommDestroy(made);
      EXPECT_TRUE(in_time(begin, 1500));
      seat.release();
    }
    seat.meet();
    if (seat.rank() != 0) {
      EXPECT_TRUE(succeeded(trial.issue(parent)));
    }
    seat.gpu().synchronize(seat.stream());
    EXPECT_EQ(trial.fault(), "");
    EXPECT_EQ(fault_of(seat, parent, kSeats), "");
    seat.meet();
  });
}

// GPUs for one thread, the first of which is its current one.
class CudaInitAll : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    simulated::uninstall_all();
    for (int ordinal = 0; ordinal < kSeats; ++ordinal) {
      gpus_.push_back(std::make_shared<simulated::SimulatedGpu>(simulated::GpuOptions{.ordinal = ordinal, .delay_us = 50}));
      simulated::install(gpus_.back());
      streams_.push_back(gpus_.back()->make_user_queue());
    }
    simulated::set_current_device(0);
  }
  void TearDown() override {
    simulated::set_current_device(-1);
    simulated::uninstall_all();
  }

  simulated::SimulatedGpu& gpu(int ordinal) { return *gpus_[static_cast<size_t>(ordinal)]; }
  Queue stream(int ordinal) { return streams_[static_cast<size_t>(ordinal)]; }
  static int device_of(fcclComm_t comm) {
    int device = -1;
    EXPECT_TRUE(succeeded(fcclCommCuDevice(comm, &device)));
    return device;
  }

 private:
  const Setting path_{"FCCL_CUDA_PATH", GetParam()};
  std::vector<std::shared_ptr<simulated::SimulatedGpu>> gpus_;
  std::vector<Queue> streams_;
};

TEST_P(CudaInitAll, gives_each_rank_the_gpu_of_the_list_and_one_thread_groups_over_all) {
  const std::array devices{2, 0, 1};
  std::array<fcclComm_t, 3> comms{};
  ASSERT_TRUE(succeeded(fcclCommInitAll(comms.data(), 3, devices.data())));
  constexpr size_t kCount = 1'001;
  std::array<std::byte*, 3> buffers{};
  for (size_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(device_of(comms[rank]), devices[rank]);
    std::vector<int32_t> given(kCount);
    std::iota(given.begin(), given.end(), static_cast<int32_t>(rank) * 10'000);
    buffers[rank] = gpu(devices[rank]).allocate(MemoryPlace::this_device, kCount * sizeof(int32_t));
    gpu(devices[rank]).write(buffers[rank], std::as_bytes(std::span(given)));
  }
  ASSERT_TRUE(succeeded(fcclGroupStart()));
  for (size_t rank = 0; rank < 3; ++rank)
    EXPECT_TRUE(succeeded(
        fcclAllReduce(buffers[rank], buffers[rank], kCount, fcclInt32, fcclSum, comms[rank], stream(devices[rank]).native)));
  ASSERT_TRUE(succeeded(fcclGroupEnd()));
  for (size_t rank = 0; rank < 3; ++rank) {
    gpu(devices[rank]).synchronize(stream(devices[rank]));
    std::vector<int32_t> sum(kCount, -7), expected(kCount);
    for (size_t i = 0; i < kCount; ++i) expected[i] = 30'000 + 3 * static_cast<int32_t>(i);
    gpu(devices[rank]).read(buffers[rank], std::as_writable_bytes(std::span(sum)));
    EXPECT_EQ(sum, expected) << "rank " << rank;
  }
  for (fcclComm_t comm : comms) fcclCommDestroy(comm);
}

TEST_P(CudaInitAll, without_a_list_gives_each_rank_the_gpu_of_its_number) {
  std::array<fcclComm_t, 2> comms{};
  ASSERT_TRUE(succeeded(fcclCommInitAll(comms.data(), 2, nullptr)));
  for (size_t rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(device_of(comms[rank]), static_cast<int>(rank));
    fcclCommDestroy(comms[rank]);
  }
}

TEST_P(CudaInitAll, on_a_thread_without_a_gpu_makes_ranks_of_cpu_memory) {
  simulated::set_current_device(-1);
  const std::array devices{2, 0};
  std::array<fcclComm_t, 2> comms{};
  ASSERT_TRUE(succeeded(fcclCommInitAll(comms.data(), 2, devices.data())));
  for (fcclComm_t comm : comms) {
    int device = -1;
    EXPECT_EQ(fcclCommCuDevice(comm, &device), fcclInvalidUsage);
    fcclCommDestroy(comm);
  }
}

TEST_P(CudaInitAll, refuses_a_gpu_twice_and_one_that_there_is_not) {
  const std::array twice{1, 0, 1}, absent{0, 7, 1};
  std::array<fcclComm_t, 3> comms{};
  EXPECT_EQ(fcclCommInitAll(comms.data(), 3, twice.data()), fcclInvalidUsage);
  EXPECT_NE(std::string(fcclGetLastError(nullptr)).find("devlist[2] is 1, as devlist[0] is"), std::string::npos)
      << fcclGetLastError(nullptr);
  EXPECT_EQ(fcclCommInitAll(comms.data(), 3, absent.data()), fcclInvalidArgument);
  EXPECT_NE(std::string(fcclGetLastError(nullptr)).find("rank 1: cannot use GPU 7"), std::string::npos)
      << fcclGetLastError(nullptr);
  EXPECT_EQ(comms, (std::array<fcclComm_t, 3>{}));
}

INSTANTIATE_TEST_SUITE_P(By, CudaInitAll, ::testing::ValuesIn(kCudaPaths), [](const auto& info) { return info.param; });

}  // namespace
}  // namespace fccl::core::testing
