// Tests of the faults: each of them happens, and equal seeds give equal histories.
#include "transports/faults.h"

#include <string>

#include "transports/fabric_processes.h"

namespace fccl::core {

namespace {

using Kind = Completion::Kind;

constexpr size_t kWrites = 300;
constexpr size_t kMessages = 100;

class FaultsTest : public FabricProcesses {
 protected:
  // Writes and messages from 0 to 1, all of which must come to a good end.
  void carry_traffic(const simulated::FabricOptions& options) {
    start_over(options, 2, 1);
    std::vector<Operation> operations;
    for (uint32_t i = 0; i < kWrites; ++i) {
      const size_t at = i * size_t{500};
      fill(0, at, 499, i);
      expect_copy(0, at, 499, 1, at);
      operations.push_back(write({}, at, 499, at, i));
      if (i % 3 == 0) operations.push_back(message({}, at, 1 + i % 64));
    }
    post({}, operations);
    ASSERT_TRUE(drive_until(
        [&] { return count(0, Kind::ended) == kWrites + kMessages && process(1).found.size() == kWrites + kMessages; }));
    expect_memory();
  }

  // All that was found, in its order.
  std::string history() {
    std::string lines;
    for (const Process& process : processes) {
      for (const Finding& finding : process.found) {
        lines += std::to_string(static_cast<int>(finding.kind)) + " " + std::to_string(finding.immediate) + " " +
                 std::to_string(finding.tag) + " " + text(finding.bytes) + "\n";
      }
    }
    return lines;
  }
};

TEST_F(FaultsTest, a_kind_fabric_has_none) {
  carry_traffic({});
  const simulated::FaultCounts& counts = fabric->counts();
  EXPECT_EQ(counts.operations, kWrites + kMessages);
  EXPECT_EQ(counts.split, 0u);
  EXPECT_EQ(counts.duplicated_fragments, 0u);
  EXPECT_EQ(counts.interleaved_fragments, 0u);
  EXPECT_EQ(counts.full_by_chance, 0u);
  EXPECT_EQ(counts.full_handshakes, 0u);
  EXPECT_EQ(counts.refused_connects, 0u);
}

TEST_F(FaultsTest, a_kind_fabric_keeps_the_order_of_writes) {
  start_over({});
  for (uint32_t i = 0; i < 200; ++i) post({}, write({}, 0, 1, 0, i));
  ASSERT_TRUE(drive_until([&] { return count(1, Kind::arrived) == 200 && count(0, Kind::ended) == 200; }));
  for (uint32_t i = 0; i < 200; ++i) ASSERT_EQ(process(1).found[i].immediate, i);
  EXPECT_EQ(fabric->counts().reordered_arrivals, 0u);
  EXPECT_EQ(fabric->counts().reordered_ends, 0u);
}

TEST_F(FaultsTest, each_happens_often_in_a_few_hundred_operations) {
  simulated::FabricOptions options{.faults = simulated::worse_than_efa()};
  options.limits.outstanding = 8;
  carry_traffic(options);
  const simulated::FaultCounts& counts = fabric->counts();
  EXPECT_GT(counts.split, kWrites / 2);
  EXPECT_GT(counts.duplicated_fragments, kWrites / 2);
  EXPECT_GT(counts.interleaved_fragments, kWrites / 2);
  EXPECT_GT(counts.reordered_arrivals, kWrites / 4);
  EXPECT_GT(counts.reordered_ends, kWrites / 4);
  EXPECT_GT(counts.ended_first, kWrites / 10);
  EXPECT_GT(counts.arrived_first, kWrites / 10);
  EXPECT_GT(counts.full_windows, 0u);
  EXPECT_GT(counts.full_by_chance, kWrites / 10);
  EXPECT_GT(counts.delayed_messages, 0u);
}

TEST_F(FaultsTest, what_is_due_together_comes_in_any_order) {
  start_over({.faults = {.reorders = true}});
  for (uint32_t i = 0; i < 40; ++i) post({}, write({}, 0, 1, 0, i));
  ASSERT_TRUE(drive_until([&] { return count(1, Kind::arrived) == 40 && count(0, Kind::ended) == 40; }));
  EXPECT_GT(fabric->counts().reordered_arrivals, 10u);
  EXPECT_GT(fabric->counts().reordered_ends, 10u);
}

TEST_F(FaultsTest, messages_pass_each_other) {
  start_over({.faults = simulated::worse_than_efa()});
  for (uint32_t i = 0; i < 100; ++i) post({}, message({}, i, 1));
  ASSERT_TRUE(drive_until([&] { return count(1, Kind::message) == 100; }));
  EXPECT_GT(fabric->counts().reordered_arrivals, 20u);
}

TEST_F(FaultsTest, a_window_of_one_takes_one_operation_at_a_time) {
  simulated::FabricOptions options;
  options.limits.outstanding = 1;
  start_over(options);
  const std::vector<Operation> operations = {write({}, 0, 1, 0), write({}, 1, 1, 1)};
  EXPECT_EQ(transport(0).post(0, operations).value(), 1u);
  EXPECT_EQ(transport(0).post(0, std::span(operations).subspan(1)).value(), 0u);
  ASSERT_TRUE(drive_until([&] { return count(0, Kind::ended) == 1; }));
  EXPECT_EQ(transport(0).post(0, std::span(operations).subspan(1)).value(), 1u);
}

TEST_F(FaultsTest, like_efa_holds_sixteen_operations_before_the_peer_has_polled) {
  start_over({.faults = simulated::like_efa()});
  std::vector<Operation> operations;
  for (uint32_t i = 0; i < 20; ++i) operations.push_back(write({}, i, 1, i));
  EXPECT_EQ(transport(0).post(0, operations).value(), 16u);
  const auto rest = std::span(operations).subspan(16);
  for (int i = 0; i < 10; ++i) poll(0);
  EXPECT_EQ(transport(0).post(0, rest).value(), 0u);
  poll(1);
  EXPECT_EQ(transport(0).post(0, rest).value(), 4u);
  EXPECT_EQ(fabric->counts().full_handshakes, 2u);
}

TEST_F(FaultsTest, connects_are_refused_at_random) {
  start_over({.faults = {.refusals_per_mille = 500}});
  uint64_t refused = 0;
  for (int i = 0; i < 100; ++i) {
    const auto connected = transport(0).connect(0, transport(1).address(0));
    if (connected) continue;
    ++refused;
    EXPECT_EQ(connected.error().code, fcclSystemError);
  }
  EXPECT_GT(refused, 20u);
  EXPECT_LT(refused, 80u);
  EXPECT_EQ(fabric->counts().refused_connects, refused);
}

TEST_F(FaultsTest, equal_seeds_give_equal_histories_and_others_do_not) {
  std::vector<std::string> histories;
  for (const uint64_t seed : {7, 7, 8}) {
    carry_traffic({.faults = simulated::worse_than_efa(), .seed = seed});
    histories.push_back(history());
  }
  EXPECT_EQ(histories[0], histories[1]);
  EXPECT_NE(histories[0], histories[2]);
}

}  // namespace

}  // namespace fccl::core
