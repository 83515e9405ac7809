// A wire lane beside its collectives: who gets on while others rest, what it costs, and what does not connect.
#include "wire/lane.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <ctime>
#include <functional>
#include <thread>

#include "hierarchical/plan_executor.h"
#include "plan/catalog.h"
#include "wire/bent_transport.h"
#include "wire/calls.h"
#include "wire/entry.h"
#include "wire/port.h"

namespace fccl::core::testing {
namespace {

using namespace std::chrono_literals;

TEST(WireLane, runs_beside_another_lane_of_its_endpoint) {
  simulated::FabricOptions options{.faults = simulated::worse_than_efa()};
  options.limits.rails = 2;
  options.limits.outstanding = 4;
  Group group({.members = 3, .lanes = 2}, options);
  const Calls gathers{.way = {fcclCollAllGather, "pairwise"}, .dtype = fcclInt32, .count = 1500, .times = 20};
  const Calls reductions{
      .way = {fcclCollReduceScatter, "pairwise"}, .dtype = fcclFloat32, .count = 1700, .times = 20, .lane = 1};
  group.run([&](int member) {
    std::thread other([&] { run_calls_of(group, member, reductions); });
    run_calls_of(group, member, gathers);
    other.join();
  });
}

// A root that has returned does not poll again until its peers are done, though its network needs it to.
TEST(WireLane, is_served_while_its_rank_computes) {
  Group group({.members = 3}, {.faults = simulated::worse_than_efa()});
  const Calls calls{.way = {fcclCollBroadcast, "chain"}, .dtype = fcclInt32, .count = 1000};
  std::atomic<int> done{0};
  group.run([&](int member) {
    EXPECT_TRUE(run_calls_of(group, member, calls));
    if (member != 0) ++done;
    const Deadline deadline = Deadline::after(20s);
    while (member == 0 && done < 2 && !deadline.passed()) std::this_thread::sleep_for(1ms);
  });
  EXPECT_EQ(done, 2);
}

// The root of a broadcast hears nothing of its peers but their credits.
TEST(WireLane, knows_when_its_peers_have_taken_all_that_it_sent) {
  Group group({.members = 3}, {.faults = simulated::worse_than_efa()});
  const Calls calls{.way = {fcclCollBroadcast, "tree"}, .dtype = fcclInt32, .count = 700};
  group.run([&](int member) {
    EXPECT_TRUE(run_calls_of(group, member, calls));
    EXPECT_TRUE(group.endpoint(member).await_taken(Deadline::after(20s)));
  });
}

TEST(WireLane, costs_next_to_nothing_while_nobody_calls) {
  const auto cpu_time = [] {
    timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
  };
  Group group({.members = 2});
  ASSERT_TRUE(run_calls(group, {.way = {fcclCollAllGather, "entries"}, .count = 8}));
  std::this_thread::sleep_for(20ms);
  const auto before = cpu_time();
  std::this_thread::sleep_for(500ms);
  // A thread that never slept would have used all of it.
  EXPECT_LT(cpu_time() - before, 100ms);
}

TEST(WireLane, sends_a_small_gather_in_one_message_to_each_peer) {
  Group group({.members = 3});
  ASSERT_TRUE(run_calls(group, {.way = {fcclCollAllGather, "entries"}, .count = 8}));
  EXPECT_EQ(group.fabric().counts().operations, 3u * 2u);
}

TEST(WireLane, waits_to_enter_until_its_entry_of_two_calls_before_has_ended) {
  Group group({.members = 2});
  group.deadline = 1ms;
  group.fabric().lose(1, 0, simulated::Loss::silent);
  WireEntries& entries = group.entries(0);
  for (const bool free : {true, true, false}) {
    entries.begin({});
    ASSERT_EQ(entries.may_enter(1).reached(), free);
    if (free) entries.enter(1, 0);
  }
}

// Calls by dissemination pass over boxes, which then keep an entry of long ago.
TEST(WireLane, takes_no_entry_of_an_earlier_call_for_one_of_this_however_long_ago_it_was) {
  Group group({.members = 2});
  WireEntries& entries = group.entries(0);
  entries.begin({});
  Port& port = group.lane(0).port();
  for (const uint32_t calls : {2u, 0x7fffffffu, 0x80000000u, 0x80000002u, 0xfffffffeu}) {
    for (EntryBox& box : port.peers[0].boxes) box.word = uint64_t{port.sequence.load() - calls} << 32;
    EXPECT_FALSE(entries.has_entered(1)) << calls << " calls ago";
  }
}

int algorithm_of(fcclColl_t collective, std::string_view name) {
  for (size_t i = 0; i < plan::kCatalog<plan::Project>.size(); ++i)
    if (plan::kCatalog<plan::Project>[i].collective == collective && plan::kCatalog<plan::Project>[i].name == name)
      return static_cast<int>(i);
  ADD_FAILURE() << "there is no algorithm " << name;
  return 0;
}

// A call between hosts of one rank each.
WireTask task_of(const Call& call, const Blocks& blocks, const Pieces& pieces, const plan::Steps& steps) {
  const auto at = [&](const void* base) -> WireSide {
    std::byte* bytes = static_cast<std::byte*>(const_cast<void*>(base));
    return {&blocks, pieces, {bytes, pieces.blocks, pieces.piece_elements * size_of(call.signature.dtype)}};
  };
  return {.call = {1, call.signature},
          .steps = &steps,
          .input = at(call.send),
          .output = at(call.recv),
          .element_bytes = size_of(call.signature.dtype),
          .partial_bytes = size_of(call.signature.dtype),
          .divisor = {}};
}

// Input that the host has still to make: only slices that are ready leave, and those received are counted.
TEST(PlanExecutor, goes_as_far_as_its_input_is_ready) {
  Group group({.members = 2, .slot_bytes = 64});
  const int algorithm = algorithm_of(fcclCollAllGather, "pairwise");
  const std::vector<plan::Steps> steps{plan::steps_of(algorithm, {2, 0}, 0), plan::steps_of(algorithm, {2, 0}, 1)};
  constexpr size_t kSlice = 64, kBytes = 3 * kSlice;
  const Bytes made = input_of(0, kBytes, 0);
  std::vector<Bytes> buffers(2, Bytes(2 * kBytes, kPoison));
  const Bytes other = input_of(1, kBytes, 0);
  std::copy(other.begin(), other.end(), buffers[1].begin() + kBytes);
  std::vector<WireTask> tasks;
  tasks.reserve(2);
  for (int m = 0; m < 2; ++m) {
    const Call call{{fcclCollAllGather, fcclInt8, ReduceOp::sum, -1, kBytes}, buffers[m].data(), buffers[m].data(), {}};
    tasks.push_back(task_of(call, group.columns(m).by_rank(0), {Layout::of_many(kBytes, 2 * kBytes), 0, kSlice, 3}, steps[m]));
    group.exchange(m).begin(tasks.back(), false);
  }
  PlanExecutor first(group.lane(0), group.exchange(0), tasks[0]), second(group.lane(1), group.exchange(1), tasks[1]);
  const Deadline deadline = Deadline::after(20s);
  for (uint64_t ready = 1; ready <= 3; ++ready) {
    const auto offset = static_cast<ptrdiff_t>((ready - 1) * kSlice);
    std::copy_n(made.begin() + offset, kSlice, buffers[0].begin() + offset);
    while (!deadline.passed() && (first.done() < ready || second.received() < ready)) {
      first.advance(ready, 3);
      second.advance(3, 3);
    }
    EXPECT_EQ(first.done(), ready);
    EXPECT_EQ(second.received(), ready);
  }
  Bytes all = made;
  all.insert(all.end(), other.begin(), other.end());
  EXPECT_EQ(buffers[0], all);
  EXPECT_EQ(buffers[1], all);
}

// Output memory of a few slices that the host has still to empty.
TEST(PlanExecutor, receives_only_what_there_is_room_for) {
  Group group({.members = 2, .slot_bytes = 64});
  const int algorithm = algorithm_of(fcclCollAllGather, "pairwise");
  const std::vector<plan::Steps> steps{plan::steps_of(algorithm, {2, 0}, 0), plan::steps_of(algorithm, {2, 0}, 1)};
  std::vector<Bytes> buffers(2, Bytes(384, kPoison));
  std::vector<WireTask> tasks;
  tasks.reserve(2);
  for (int m = 0; m < 2; ++m) {
    const Call call{{fcclCollAllGather, fcclInt8, ReduceOp::sum, -1, 192}, buffers[m].data(), buffers[m].data(), {}};
    tasks.push_back(task_of(call, group.columns(m).by_rank(0), {Layout::of_many(192, 384), 0, 64, 3}, steps[m]));
    group.exchange(m).begin(tasks.back(), false);
  }
  PlanExecutor first(group.lane(0), group.exchange(0), tasks[0]), second(group.lane(1), group.exchange(1), tasks[1]);
  const Deadline deadline = Deadline::after(20s);
  while ((first.received() < 1 || second.received() < 3) && !deadline.passed()) {
    first.advance(3, 1);
    second.advance(3, 3);
  }
  for (int i = 0; i < 100; ++i) first.advance(3, 1);
  EXPECT_EQ(first.received(), 1u);
  EXPECT_EQ(second.received(), 3u);
}

// The root of a tree tells member 2 itself. Member 1, of which member 2 hears in an earlier round, does not come.
TEST(PlanExecutor, takes_the_data_of_a_peer_that_made_the_call_while_another_one_is_late) {
  for (const bool by_dissemination : {false, true}) {
    Group group({.members = 3, .slot_bytes = 64});
    const int algorithm = algorithm_of(fcclCollBroadcast, "tree");
    const std::vector<plan::Steps> steps{plan::steps_of(algorithm, {3, 0}, 0), {}, plan::steps_of(algorithm, {3, 0}, 2)};
    std::vector<Bytes> buffers{input_of(0, 64, 0), {}, Bytes(64, kPoison)};
    std::vector<WireTask> tasks(3);
    for (const int m : {0, 2}) {
      const Call call{{fcclCollBroadcast, fcclInt8, ReduceOp::sum, 0, 64}, buffers[m].data(), buffers[m].data(), {}};
      tasks[m] = task_of(call, group.columns(m).whole(0), {Layout::of_many(64, 64), 0, 64, 1}, steps[m]);
      tasks[m].by_dissemination = by_dissemination;
      group.exchange(m).begin(tasks[m], false);
    }
    PlanExecutor root(group.lane(0), group.exchange(0), tasks[0]), last(group.lane(2), group.exchange(2), tasks[2]);
    const Deadline deadline = Deadline::after(20s);
    while (last.received() < 1 && !deadline.passed()) {
      group.exchange(0).advance();
      root.advance(1, 1);
      group.exchange(2).advance();
      last.advance(1, 1);
    }
    EXPECT_EQ(buffers[2], buffers[0]);
    EXPECT_FALSE(group.exchange(2).has_heard_all());
  }
}

// In place, with the way to the peer closed while the peer's part is there: the sum would be written over what is still to be
// sent.
TEST(PlanExecutor, keeps_its_input_until_all_of_it_is_staged) {
  Group group({.members = 2, .window = 1});
  WireLane& first = group.lane(0);
  WireLane& second = group.lane(1);
  const Deadline deadline = Deadline::after(20s);
  const auto wait_for_message = [&](WireLane& lane, size_t bytes) {
    while (!lane.landing().has_arrived(1 - lane.me(), bytes) && !deadline.passed()) lane.progress();
  };
  int32_t value = 5;
  const int32_t part = 7;
  const Call call{{fcclCollAllReduce, fcclInt32, ReduceOp::sum, -1, 1}, &value, &value, {}};
  const plan::Steps steps = plan::steps_of(algorithm_of(fcclCollAllReduce, "direct"), {2, 0}, 0);
  WireTask task = task_of(call, group.columns(0).whole(0), {Layout::of_many(4, 4), 2, 16, 1}, steps);
  task.total = total_kernel(fcclInt32, ReduceOp::sum, WireType::call);
  group.exchange(0).begin(task, false);
  group.entries(1).begin(task.call);
  group.entries(1).enter(0, 0);
  first.take_stage();
  first.send(1, 64);
  std::memcpy(second.take_stage(), &part, sizeof(part));
  second.send(0, sizeof(part));
  wait_for_message(first, sizeof(part));
  PlanExecutor executor(first, group.exchange(0), task);
  executor.advance(1, 1);
  EXPECT_EQ(executor.done(), 0u);
  EXPECT_EQ(value, 5);
  wait_for_message(second, 64);
  second.landing().receive(0, 64);
  second.landing().consume(0);
  second.landing().grant();
  while (executor.done() == 0 && !deadline.passed()) {
    executor.advance(1, 1);
    second.progress();
  }
  EXPECT_EQ(value, 12);
  wait_for_message(second, sizeof(part));
  int32_t sent = 0;
  std::memcpy(&sent, second.landing().message(0), sizeof(sent));
  EXPECT_EQ(sent, 5);
}

// Two members whose lanes have these shapes; the error with which the first does not connect.
std::string refusal(const WireLaneShape& first, const WireLaneShape& second, const simulated::FabricOptions& options = {}) {
  simulated::Fabric fabric(options);
  Endpoint endpoints[] = {Endpoint(fabric.open()), Endpoint(fabric.open())};
  auto one = WireLane::open(endpoints[0], first);
  auto other = WireLane::open(endpoints[1], second);
  if (!one || !other) return "no lane";
  std::vector<Introduction> all(first.ranks.size(), (*other)->introduction());
  all[first.me] = (*one)->introduction();
  const auto connected = (*one)->connect(all);
  return connected ? "" : connected.error().message;
}

TEST(WireLane, does_not_connect_to_a_member_with_other_settings) {
  const WireLaneShape first{.ranks = {10, 11}, .me = 0, .slot_bytes = 1024};
  WireLaneShape second = first;
  second.me = 1;
  EXPECT_EQ(refusal(first, second), "");
  second.slot_bytes = 2048;
  EXPECT_NE(refusal(first, second).find("rank 11 has a column of 2 members with 8 slots of 2048 bytes"), std::string::npos);
  second.slot_bytes = 1024;
  second.window = 4;
  EXPECT_NE(refusal(first, second).find("rank 11 has a column of 2 members with 4 slots"), std::string::npos);
}

TEST(WireLane, does_not_connect_where_immediates_cannot_name_its_channel) {
  simulated::FabricOptions options;
  options.limits.immediate_bits = 8;
  const WireLaneShape first{.ranks = {10, 11}, .me = 0, .slot_bytes = 1024};
  const WireLaneShape second{.ranks = {10, 11}, .me = 1, .slot_bytes = 1024};
  EXPECT_EQ(refusal(first, second, options), "");
  const WireLaneShape third{.ranks = {10, 11, 12}, .me = 1, .slot_bytes = 1024};
  WireLaneShape fourth = third;
  fourth.me = 0;
  EXPECT_NE(refusal(fourth, third, options), "");
}

// The error with which a lane does not open on an endpoint over a transport that is bent like this.
std::string refusal_to_open(const std::function<void(BentTransport&)>& bend) {
  simulated::Fabric fabric(simulated::FabricOptions{});
  auto transport = std::make_unique<BentTransport>(fabric.open());
  BentTransport& bent = *transport;
  bend(bent);
  Endpoint endpoint(std::move(transport));
  const auto lane = WireLane::open(endpoint, {.ranks = {10, 11}, .me = 0, .slot_bytes = 1024});
  if (lane) return "";
  EXPECT_EQ(bent.registered, 0);
  return lane.error().message;
}

// A process whose first communicator had more hosts may have shorter messages than the others.
TEST(WireLane, has_as_much_room_beside_an_entry_as_the_member_with_the_shortest_messages) {
  simulated::FabricOptions options;
  options.limits.message_bytes = 20'000;
  Group group({.members = 4, .payload_bytes = 16'384}, options, [](int member, std::unique_ptr<Transport> transport) {
    auto bent = std::make_unique<BentTransport>(std::move(transport));
    if (member == 2) bent->shown.message_bytes = 4096 + sizeof(EntryMessage);
    return bent;
  });
  for (int member = 0; member < 4; ++member) EXPECT_EQ(group.lane(member).payload_bytes(), 4096U) << member;
}

TEST(WireLane, does_not_open_where_an_entry_is_longer_than_a_message) {
  EXPECT_EQ(refusal_to_open([](BentTransport&) {}), "");
  EXPECT_NE(refusal_to_open([](BentTransport& bent) { bent.shown.message_bytes = 16; }).find("messages of 16 bytes"),
            std::string::npos);
}

TEST(WireLane, leaves_nothing_registered_where_some_of_its_memory_cannot_be) {
  for (const int regions : {0, 1})
    EXPECT_EQ(refusal_to_open([&](BentTransport& bent) { bent.registers_at_most = regions; }), "no more memory can be pinned");
  EXPECT_EQ(refusal_to_open([](BentTransport& bent) { bent.registers_at_most = 2; }), "");
}

// TCP goes on with a write that has begun, into memory that is no longer registered. Here a test writes in its place.
TEST(WireLane, leaves_peers_the_landing_of_a_closed_lane_until_the_transport_ends) {
  simulated::Fabric fabric(simulated::FabricOptions{});
  auto transport = std::make_unique<BentTransport>(fabric.open());
  BentTransport& bent = *transport;
  Endpoint endpoint(std::move(transport));
  for (const size_t slot_bytes : {size_t{1024}, size_t{256} << 10})
    for (int round = 0; round < 20; ++round)
      ASSERT_TRUE(WireLane::open(endpoint, {.ranks = {10, 11}, .me = 0, .slot_bytes = slot_bytes}));
  EXPECT_EQ(bent.registered, 0);
  std::ranges::sort(bent.writable, {}, [](std::span<std::byte> landing) { return landing.data(); });
  for (size_t i = 0; i < bent.writable.size(); ++i) {
    if (i > 0) EXPECT_LE(bent.writable[i - 1].data() + bent.writable[i - 1].size(), bent.writable[i].data());
    std::ranges::fill(bent.writable[i], std::byte{0xee});
  }
}

TEST(WireLane, does_not_connect_where_a_slot_is_too_many_writes) {
  simulated::FabricOptions options;
  options.limits.write_bytes = 64;
  const WireLaneShape first{.ranks = {10, 11}, .me = 0, .slot_bytes = size_t{1} << 20};
  WireLaneShape second = first;
  second.me = 1;
  EXPECT_NE(refusal(first, second, options).find("the network to rank 11 takes writes of 64 bytes at most"), std::string::npos);
}

TEST(WireLane, says_why_a_member_cannot_be_connected) {
  simulated::FabricOptions options;
  options.faults.refusals_per_mille = 1000;
  const WireLaneShape first{.ranks = {10, 11}, .me = 0, .slot_bytes = 1024};
  const WireLaneShape second{.ranks = {10, 11}, .me = 1, .slot_bytes = 1024};
  EXPECT_NE(refusal(first, second, options).find("connecting to rank 11 over rail 0"), std::string::npos);
}

}  // namespace
}  // namespace fccl::core::testing
