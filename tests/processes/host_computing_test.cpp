// Ranks that compute after their part of a call between hosts: every other rank in that call, or in the next one if they have
// issued it too, comes out while they still compute.
#include <ctime>
#include <memory>
#include <optional>

#include "processes/hosts.h"
#include "processes/test_stream.h"

namespace fccl::core::testing {
namespace {

using namespace std::chrono_literals;

// How the rank that computes makes its calls; the others make blocking ones.
enum class Way { blocking, on_a_stream, the_last_on_a_stream };

std::string name_of(Way way) {
  constexpr const char* kNames[] = {"blocking", "on_a_stream", "the_last_on_a_stream"};
  return kNames[static_cast<int>(way)];
}

// A call of every collective, with the rank that computes as its root and with another one.
std::vector<Recipe> calls_around(int computing, int ranks) {
  std::vector<Recipe> calls;
  for (int collective = 0; collective < fcclCollSend; ++collective) {
    Recipe recipe{.collective = static_cast<fcclColl_t>(collective), .dtype = fcclFloat32, .root = computing};
    if (collective != fcclCollBarrier) recipe.count = 700'001;
    calls.push_back(recipe);
    recipe.root = (computing + 1) % ranks;
    if (has_root(recipe.collective)) calls.push_back(recipe);
  }
  return calls;
}

// One rank's part of round after round: calls that follow one another, in all ranks the same, behind which one rank computes
// and the others say that they are out.
class Rounds {
 public:
  Rounds(const Seat& seat, const std::vector<int>& host_of, Way way)
      : seat_(seat), placement_{host_of}, way_(way), comm_(seat) {}

  // `goes_on()`: whether the rank that computes does so still.
  template <class Condition>
  void run(const Recipe& recipe, int computing, Condition goes_on) {
    ++round_;
    std::vector<std::unique_ptr<Trial>> trials;
    for (int i = 0; i < kCalls; ++i) {
      Recipe call = recipe;
      call.iteration = round_ * kCalls + i;
      trials.push_back(std::make_unique<Trial>(call, seat_.rank, seat_.ranks, placement_));
    }
    seat_.meet();
    if (seat_.rank == computing) {
      for (const auto& trial : trials) EXPECT_TRUE(succeeded(trial->issue(comm_, stream_for(trial == trials.back()))));
      while (goes_on()) continue;
      EXPECT_TRUE(all_others_are_out()) << describe(recipe) << ": somebody waited for rank " << computing;
      EXPECT_TRUE(succeeded(fcclStreamSynchronize(stream_)));
    } else {
      for (const auto& trial : trials) EXPECT_TRUE(succeeded(trial->issue(comm_)));
      ++seat_.board.notes[0];
    }
    for (const auto& trial : trials) EXPECT_EQ(trial->fault(), "");
    seat_.meet();
  }

  bool all_others_are_out() const { return seat_.board.notes[0] == static_cast<int64_t>(round_) * (seat_.ranks - 1); }

 private:
  static constexpr int kCalls = 3;

  fcclStream_t stream_for(bool last) const {
    return way_ == Way::on_a_stream || (way_ == Way::the_last_on_a_stream && last) ? fcclStream_t{stream_} : nullptr;
  }

  const Seat& seat_;
  Placement placement_;
  Way way_;
  Comm comm_;
  TestStream stream_;
  int round_ = 0;
};

// The last is the rank that computes.
class Computing : public ::testing::TestWithParam<std::tuple<OnHosts, Way, int>> {};

// The rank computes until the others are out or it has used that much of a processor, which they can too under any load.
TEST_P(Computing, stalls_nobody) {
  constexpr double kMostSeconds = 2.0 * kSlowdown;
  const auto& [hosts, way, computing] = GetParam();
  Launch launch = hosts.launch();
  launch.limit = 110s;
  run_ranks(launch, [&](const Seat& seat) {
    Rounds rounds(seat, hosts.host_of, way);
    for (const Recipe& recipe : calls_around(computing, seat.ranks)) {
      std::optional<double> begin;
      rounds.run(recipe, computing, [&] {
        if (!begin) begin = processor_seconds();
        return processor_seconds() - *begin < kMostSeconds && !rounds.all_others_are_out();
      });
    }
  });
}

std::string name_of_computing(const ::testing::TestParamInfo<Computing::ParamType>& info) {
  const auto& [hosts, way, computing] = info.param;
  return std::string(hosts.name) + "_" + name_of(way) + "_beside_rank_" + std::to_string(computing);
}

// On either host, in a column and left over.
const auto kEveryComputer = ::testing::Values(0, 2, 3);
const auto kEveryWay = ::testing::Values(Way::blocking, Way::on_a_stream, Way::the_last_on_a_stream);

// Each way and each rank once; the campaign has all pairs.
INSTANTIATE_TEST_SUITE_P(Of, Computing,
                         ::testing::Values(std::tuple{kThreeAndOne, Way::blocking, 0},
                                           std::tuple{kThreeAndOne, Way::on_a_stream, 2},
                                           std::tuple{kThreeAndOne, Way::the_last_on_a_stream, 3}),
                         name_of_computing);
INSTANTIATE_TEST_SUITE_P(Campaign, Computing,
                         ::testing::Combine(::testing::Values(kTwoAndTwo, kThreeAndOne), kEveryWay, kEveryComputer),
                         name_of_computing);

// The same, but the rank computes for all of the time.
class ComputingCampaign : public Computing {};

TEST_P(ComputingCampaign, for_10_s_stalls_nobody) {
  const auto& [hosts, way, computing] = GetParam();
  Launch launch = hosts.launch();
  launch.limit = 600s;
  run_ranks(launch, [&](const Seat& seat) {
    Rounds rounds(seat, hosts.host_of, way);
    for (const Recipe& recipe : calls_around(computing, seat.ranks)) {
      std::optional<int64_t> begin;
      rounds.run(recipe, computing, [&] {
        if (!begin) begin = now_ns();
        return ms_since(*begin) < 10'000;
      });
    }
  });
}

INSTANTIATE_TEST_SUITE_P(
    Of, ComputingCampaign,
    ::testing::Values(std::tuple{kTwoAndTwo, Way::blocking, 0}, std::tuple{kTwoAndTwo, Way::on_a_stream, 2},
                      std::tuple{kTwoAndTwo, Way::the_last_on_a_stream, 3}, std::tuple{kThreeAndOne, Way::blocking, 3},
                      std::tuple{kThreeAndOne, Way::on_a_stream, 0}, std::tuple{kThreeAndOne, Way::the_last_on_a_stream, 2}),
    name_of_computing);

}  // namespace
}  // namespace fccl::core::testing
