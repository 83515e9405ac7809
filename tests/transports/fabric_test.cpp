// Tests of the simulated fabric: it checks its callers, makes progress only where polls allow it, and loses links.
#include "transports/fabric.h"

#include <algorithm>

#include "transports/fabric_processes.h"

namespace fccl::core {

namespace {

using Kind = Completion::Kind;
using simulated::Loss;

using FabricTest = FabricProcesses;

// As a caller does that is wrong.
void post_anyway(Transport& transport, const Operation& operation) {
  static_cast<void>(transport.post(0, std::span(&operation, 1)));
}

TEST_F(FabricTest, bytes_of_memory_that_is_not_registered_are_refused_with_a_sentence) {
  start_over({});
  std::vector<std::byte> elsewhere(8);
  Operation operation = write({}, 0, 8, 0);
  operation.local = elsewhere.data();
  EXPECT_DEATH(post_anyway(transport(0), operation), "the bytes of operation 1 do not lie in memory");
  operation = write({}, kMemoryBytes - 7, 8, 0);
  EXPECT_DEATH(post_anyway(transport(0), operation), "the bytes of operation 2 do not lie in memory");
}

TEST_F(FabricTest, a_write_past_the_peers_memory_is_refused_with_a_sentence) {
  start_over({});
  post({}, write({}, 0, 8, kMemoryBytes - 7));
  EXPECT_DEATH(drive(5), "operation 1 goes 8 bytes from offset 524281 of memory of 524288 bytes at endpoint 1");
}

TEST_F(FabricTest, a_key_that_another_gave_is_refused_with_a_sentence) {
  start_over({}, 3);
  Operation operation = write({}, 0, 8, 0);
  operation.remote = transport(2).remote(process(2).landing, 0);
  post({}, operation);
  EXPECT_DEATH(drive(5), "which rail 0 of endpoint 1 never gave");
}

TEST_F(FabricTest, memory_that_peers_may_not_reach_is_refused_with_a_sentence) {
  start_over({});
  Operation operation = write({}, 0, 8, 0);
  operation.remote = transport(1).remote(*transport(1).register_memory(process(1).bytes, PeersMay::nothing), 0);
  post({}, operation);
  EXPECT_DEATH(drive(5), "operation 1 writes memory of endpoint 1 that peers may not write");
}

TEST_F(FabricTest, a_key_for_another_rail_is_refused_with_a_sentence) {
  simulated::FabricOptions options;
  options.limits.rails = 2;
  start_over(options);
  Operation operation = write({}, 0, 8, 0);
  operation.remote = transport(1).remote(process(1).landing, 1);
  post({}, operation);
  EXPECT_DEATH(drive(5), "which rail 0 of endpoint 1 never gave");
}

TEST_F(FabricTest, a_peer_of_another_rail_is_refused_with_a_sentence) {
  simulated::FabricOptions options;
  options.limits.rails = 2;
  start_over(options);
  const Operation operation = write({.rail = 1}, 0, 8, 0);
  EXPECT_DEATH(post_anyway(transport(0), operation), "operation 1 names peer 0, which rail 0 does not have");
}

TEST_F(FabricTest, memory_that_is_in_use_is_not_released) {
  start_over({});
  post({}, write({}, 0, 8, 0));
  EXPECT_DEATH(transport(0).release_memory(process(0).memory), "is released, but 1 operations use it");
  ASSERT_TRUE(drive_until([&] { return count(0, Kind::ended) == 1; }));
  transport(0).release_memory(process(0).memory);
}

TEST_F(FabricTest, a_tag_is_not_used_twice_at_once) {
  start_over({});
  const Operation operation = write({}, 0, 8, 0);
  post({}, operation);
  EXPECT_DEATH(post_anyway(transport(0), operation), "tag 1 is that of an operation whose end has not been polled");
  ASSERT_TRUE(drive_until([&] { return count(0, Kind::ended) == 1; }));
  post({}, operation);
}

TEST_F(FabricTest, a_write_to_memory_that_its_owner_has_released_fails) {
  start_over({});
  const Operation operation = write({}, 0, 8, 0);
  transport(1).release_memory(process(1).landing);
  post({}, operation);
  ASSERT_TRUE(drive_until([&] { return count(0, Kind::failed) == 1; }));
  EXPECT_EQ(transport(0).error_of(operation.tag).message, "endpoint 1 has released the memory");
  EXPECT_EQ(count(1, Kind::arrived), 0u);
}

TEST_F(FabricTest, nothing_moves_while_the_target_does_not_poll) {
  start_over({});
  post({}, write({}, 0, 8, 0));
  for (int i = 0; i < 100; ++i) poll(0);
  expect_memory();
  EXPECT_TRUE(process(0).found.empty());
  expect_copy(0, 0, 8, 1, 0);
  ASSERT_TRUE(drive_until([&] { return count(1, Kind::arrived) == 1 && count(0, Kind::ended) == 1; }));
  expect_memory();
}

TEST_F(FabricTest, a_poll_of_the_target_does_not_serve_for_those_that_follow) {
  start_over({.faults = {.delay_polls = 9}});
  std::vector<Operation> operations;
  for (uint32_t i = 0; i < 40; ++i) operations.push_back(write({}, i, 1, i));
  post({}, operations);
  poll(1);
  poll(0);
  const auto moved = text(actual(1, 0, 40));
  EXPECT_NE(moved, text(expected(1, 0, 40)));
  for (int i = 0; i < 100; ++i) poll(0);
  EXPECT_EQ(text(actual(1, 0, 40)), moved);
  EXPECT_NE(moved, text(actual(0, 0, 40)));
}

TEST_F(FabricTest, writes_need_no_polls_of_the_target_where_the_options_say_so) {
  simulated::FabricOptions options;
  options.needs_polling = false;
  start_over(options);
  post({}, write({}, 0, 8, 0));
  for (int i = 0; i < 3; ++i) poll(0);
  expect_copy(0, 0, 8, 1, 0);
  expect_memory();
  EXPECT_EQ(count(0, Kind::ended), 1u);
}

// A rank that has got all it waits for may stop polling.
TEST_F(FabricTest, what_has_ended_arrives_without_further_polls_of_its_sender) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    start_over({.faults = simulated::worse_than_efa(), .seed = seed});
    post({}, write({}, 0, 100, 0));
    post({}, message({}, 0, 100));
    ASSERT_TRUE(drive_until([&] { return count(0, Kind::ended) == 2; }));
    for (int i = 0; i < 20; ++i) poll(1);
    ASSERT_EQ(process(1).found.size(), 2u) << "seed " << seed;
  }
}

TEST_F(FabricTest, operations_over_a_lost_link_fail_and_others_go_on) {
  start_over({.faults = simulated::worse_than_efa()}, 3);
  fabric->lose(1, 0, Loss::reported);
  const Way to_other{.from = 0, .to = 2};
  for (uint32_t i = 0; i < 10; ++i) {
    post({}, write({}, 0, 100, 0));
    post(to_other, write(to_other, 0, 100, 0));
  }
  expect_copy(0, 0, 100, 2, 0);
  ASSERT_TRUE(drive_until([&] { return count(0, Kind::failed) == 10 && count(2, Kind::arrived) == 10; }));
  const auto failed = std::ranges::find(process(0).found, Kind::failed, &Finding::kind);
  EXPECT_EQ(transport(0).error_of(failed->tag).message, "endpoint 1 is gone");
  expect_memory();
}

TEST_F(FabricTest, a_link_that_is_silently_lost_says_nothing_for_ever) {
  start_over({.faults = simulated::worse_than_efa()}, 3);
  fabric->lose(1, 0, Loss::silent);
  const Way to_other{.from = 0, .to = 2};
  for (uint32_t i = 0; i < 10; ++i) {
    post({}, write({}, 0, 100, 0));
    post(to_other, write(to_other, 0, 100, 0));
  }
  expect_copy(0, 0, 100, 2, 0);
  ASSERT_TRUE(drive_until([&] { return count(2, Kind::arrived) == 10 && count(0, Kind::ended) == 10; }));
  drive(1000);
  EXPECT_EQ(process(0).found.size(), 10u);
  expect_memory();
}

TEST_F(FabricTest, one_rail_may_be_lost_and_another_not) {
  simulated::FabricOptions options;
  options.limits.rails = 2;
  start_over(options);
  fabric->lose(1, 1, Loss::reported);
  const Way lost{.rail = 1};
  post({}, write({}, 0, 8, 0));
  post(lost, write(lost, 0, 8, 100));
  expect_copy(0, 0, 8, 1, 0);
  ASSERT_TRUE(drive_until([&] { return count(0, Kind::failed) == 1 && count(1, Kind::arrived) == 1; }));
  expect_memory();
}

}  // namespace

}  // namespace fccl::core
