// Tests of the values of a creation: its options, what its ranks compare, its cost, and the places where ranks meet again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "bootstrap/meeting_places.h"
#include "creation/creation.h"
#include "devices/simulated_gpu.h"

namespace fccl::core {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

TEST(CreateOptionsTest, agree_on_the_settings_that_decide_and_on_the_kind_of_memory) {
  CreateOptions options;
  EXPECT_EQ(options.agreement(), options.settings.agreement() + "memoryKind=fcclMemoryCpu\n");
}

TEST(CreateOptionsTest, of_a_gpu_differ_from_those_of_cpu_memory) {
  CreateOptions options;
  options.device = std::make_shared<simulated::SimulatedGpu>();
  EXPECT_THAT(options.agreement(), HasSubstr("\nmemoryKind=fcclMemoryCuda\n"));
}

TEST(CreateOptionsTest, do_not_compare_names_and_deadlines) {
  CreateOptions one, other;
  other.name = "other";
  other.settings.timeout = 1s;
  EXPECT_EQ(one.agreement(), other.agreement());
}

TEST(JoinRequestTest, carries_the_host_that_a_rank_takes_itself_to_be_on) {
  CreateOptions options;
  options.settings.host_id = "rack 7";
  const JoinRequest request = join_request({}, 2, 5, options);
  EXPECT_EQ(request.host_override, "rack 7");
  EXPECT_EQ(request.agreement, options.agreement());
  EXPECT_EQ(request.rank, 2);
  EXPECT_EQ(request.nranks, 5);
}

TEST(InitCostTest, of_all_steps_is_their_sum) {
  InitCost cost;
  cost.roster = 1;
  cost.segment = 2;
  cost.barrier = 4;
  cost.network = 8;
  cost.hosts = 16;
  EXPECT_EQ(cost.all(), 31);
}

TEST(StepClockTest, measures_each_step_by_itself) {
  StepClock clock;
  std::this_thread::sleep_for(20ms);
  EXPECT_GE(clock.lap(), 0.02);
  EXPECT_LT(clock.lap(), 0.02);
}

class MeetingPlacesTest : public ::testing::Test {
 protected:
  static MeetingPlaces hold(const UniqueId& id) { return MeetingPlaces::hold({}, id).value(); }
  static UniqueId id_with(uint8_t first) {
    UniqueId id{.root = address_from("127.0.0.1:1").value()};
    id.key[0] = static_cast<decltype(id.key)::value_type>(first);
    return id;
  }
};

TEST_F(MeetingPlacesTest, have_a_port_each_on_the_way_to_the_root) {
  const MeetingPlaces one = hold(id_with(1)), other = hold(id_with(1));
  EXPECT_EQ(host_text(one.own()), "127.0.0.1");
  EXPECT_NE(one.own().port, 0);
  EXPECT_NE(one.own().port, other.own().port);
}

TEST_F(MeetingPlacesTest, of_one_communicator_have_one_id_for_each_rank) {
  MeetingPlaces one = hold(id_with(1)), other = hold(id_with(1));
  for (MeetingPlaces* each : {&one, &other}) each->learn({one.own(), other.own()});
  EXPECT_EQ(one.id_of(1), other.id_of(1));
  EXPECT_EQ(one.id_of(1).root, other.own());
}

TEST_F(MeetingPlacesTest, of_two_communicators_have_different_keys_and_not_those_of_the_communicators) {
  MeetingPlaces one = hold(id_with(1)), other = hold(id_with(2));
  for (MeetingPlaces* each : {&one, &other}) each->learn({one.own()});
  EXPECT_NE(one.id_of(0).key, other.id_of(0).key);
  EXPECT_NE(one.id_of(0).key, id_with(1).key);
}

TEST_F(MeetingPlacesTest, refuse_who_comes_before_a_rank_has_opened_its_own) {
  MeetingPlaces one = hold(id_with(1));
  one.learn({one.own()});
  EXPECT_EQ(connect_tcp(one.own(), Deadline::after(5s)).error, ECONNREFUSED);
  const auto opened = one.open(0);
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ(connect_tcp(one.own(), Deadline::after(5s)).error, 0);
}

TEST_F(MeetingPlacesTest, can_be_opened_again) {
  MeetingPlaces one = hold(id_with(1));
  one.learn({one.own()});
  ASSERT_TRUE(one.open(0));
  const auto again = one.open(0);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->id, one.id_of(0));
}

}  // namespace
}  // namespace fccl::core
