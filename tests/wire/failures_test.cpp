// Failures on the wire: calls that differ, peers that go, links that are lost, and peers that break the rules.
#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "wire/bent_transport.h"
#include "wire/calls.h"
#include "wire/port.h"

namespace fccl::core::testing {
namespace {

using namespace std::chrono_literals;

struct CallBuffer {
  Bytes send, recv;
  Call call;

  CallBuffer(fcclColl_t collective, size_t count)
      : send(count * 8),
        recv(count * 8),
        call{{collective, fcclInt8, ReduceOp::sum, -1, count}, send.data(), recv.data(), {}} {}
};

// Every member gathers, but member 1 makes another call; each learns of one whose call differs, and knows both.
void expect_difference(fcclColl_t collective, size_t count, uint64_t number, const char* algorithm) {
  Group group({.members = 3});
  group.run([&](int member) {
    const bool differs = member == 1;
    CallBuffer buffer(differs ? collective : fcclCollAllGather, differs ? count : 9000);
    const auto outcome = group.call(member, buffer.call, differs ? number : 7, differs ? algorithm : "pairwise");
    ASSERT_TRUE(outcome) << outcome.error().message;
    ASSERT_TRUE(std::holds_alternative<Differs>(*outcome));
    const int differs_with = std::get<Differs>(*outcome).rank;
    if (!differs) {
      EXPECT_EQ(differs_with, 1);
      EXPECT_EQ(group.entries(member).call_of(1).number, number);
      EXPECT_EQ(group.entries(member).call_of(1).signature.count, count);
      EXPECT_EQ(group.entries(member).call_of(1).signature.collective, collective);
      EXPECT_EQ(group.entries(member).call_of(member).signature.count, 9000u);
    } else {
      EXPECT_NE(differs_with, 1);
    }
  });
}

TEST(WireMismatch, of_the_count_is_found_by_every_member) { expect_difference(fcclCollAllGather, 9001, 7, "pairwise"); }
TEST(WireMismatch, of_the_collective_is_found_by_every_member) {
  expect_difference(fcclCollReduceScatter, 9000, 7, "pairwise");
}
TEST(WireMismatch, of_a_skipped_call_is_found_by_every_member) { expect_difference(fcclCollAllGather, 9000, 8, "pairwise"); }
TEST(WireMismatch, between_entries_and_slices_is_found_by_every_member) {
  expect_difference(fcclCollAllGather, 8, 7, "entries");
}

// Member 1 of five makes another call. It and the one after it find that; the others hear of nobody that all agree.
void expect_difference_by_dissemination(size_t count) {
  Group group({.members = 5});
  group.deadline = 500ms;
  group.run([&](int member) {
    CallBuffer buffer(fcclCollAllReduce, member == 1 ? count + 1 : count);
    const auto outcome = group.call(member, buffer.call, 7, "");
    if (member == 1 || member == 2) {
      ASSERT_TRUE(outcome) << outcome.error().message;
      ASSERT_TRUE(std::holds_alternative<Differs>(*outcome));
      EXPECT_EQ(std::get<Differs>(*outcome).rank, member - 1);
      EXPECT_EQ(group.entries(member).call_of(member - 1).signature.count, member == 1 ? count : count + 1);
    } else {
      ASSERT_FALSE(outcome) << "member " << member << " took the calls for equal";
    }
  });
}

TEST(WireMismatch, of_a_short_call_lets_no_member_end_it) { expect_difference_by_dissemination(3); }
TEST(WireMismatch, of_a_long_call_lets_no_member_end_it) { expect_difference_by_dissemination(9000); }

// A link to the only peer fails; the reason names it.
TEST(WireFailure, of_a_link_that_reports_its_loss_names_the_peer) {
  for (const char* algorithm : {"pairwise", "entries"}) {
    Group group({.members = 2});
    group.fabric().lose(1, 0, simulated::Loss::reported);
    CallBuffer buffer(fcclCollAllGather, 100);
    const auto outcome = group.call(0, buffer.call, 1, algorithm);
    ASSERT_FALSE(outcome);
    EXPECT_NE(outcome.error().message.find("sending to rank 1 over the network failed: endpoint 1 is gone"), std::string::npos)
        << outcome.error().message;
  }
}

TEST(WireFailure, of_a_silent_peer_ends_with_the_deadline_and_names_it) {
  Group group({.members = 2});
  group.deadline = 100ms;
  group.fabric().lose(1, 0, simulated::Loss::silent);
  CallBuffer buffer(fcclCollReduceScatter, 5000);
  const auto outcome = group.call(0, buffer.call, 1, "pairwise");
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().message, "waited too long for rank 1");
}

// It has made the call before the root, and then takes nothing out of its landing, as a process that is stopped.
TEST(WireFailure, of_a_member_that_takes_nothing_ends_the_root_with_the_deadline_and_names_it) {
  Group group({.members = 2});
  group.deadline = 300ms;
  CallBuffer buffer(fcclCollBroadcast, 100);
  buffer.call.signature.root = 0;
  group.entries(1).begin({1, buffer.call.signature});
  group.entries(1).enter(0, 0);
  // The root has heard of it before it calls.
  const Port& port = group.lane(0).port();
  const uint32_t sequence = port.sequence.load() + 1;
  const EntryBox& box = port.peers[0].boxes[sequence & 1];
  const Deadline deadline = Deadline::after(20s);
  while (box.word.load() >> 32 != sequence && !deadline.passed()) {
    group.lane(1).progress();
    group.lane(0).progress();
  }
  const auto outcome = group.call(0, buffer.call, 1, "tree");
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().message, "waited too long for rank 1");
}

// It may have done its part and left: those who do not wait for it go on, with all their memory.
TEST(WireFailure, of_a_peer_is_not_that_of_another) {
  Group group({.members = 3, .stages = 1});
  const Calls calls{.way = {fcclCollAllGather, "pairwise"}, .dtype = fcclInt32, .count = 600, .times = 5};
  ASSERT_TRUE(run_calls(group, calls));
  group.fabric().lose(2, 0, simulated::Loss::reported);
  WireLane& lane = group.lane(0);
  const Deadline deadline = Deadline::after(20s);
  while (lane.take_stage() == nullptr && !deadline.passed()) lane.progress();
  lane.send(2, 64);
  while (!lane.failure_of(2) && !deadline.passed()) lane.progress();
  EXPECT_TRUE(lane.has_failed(2));
  EXPECT_FALSE(lane.has_failed(1));
  EXPECT_FALSE(lane.failure_of(1));
  // The failure may have been that of an operation before this one.
  EXPECT_TRUE(group.endpoint(0).settle(deadline));
  EXPECT_NE(lane.take_stage(), nullptr);
}

// A member that sends nothing more to a peer finds it gone by a deadline alone.
TEST(WireFailure, of_a_peer_that_is_destroyed_in_a_call_ends_the_call_of_the_other) {
  Group group({.members = 2}, {.faults = simulated::worse_than_efa()});
  group.deadline = 300ms;
  CallBuffer buffer(fcclCollAllGather, 9000);
  std::thread leaves([&] {
    std::this_thread::sleep_for(5ms);
    group.destroy(1);
  });
  const auto outcome = group.call(0, buffer.call, 1, "pairwise");
  leaves.join();
  ASSERT_FALSE(outcome);
  EXPECT_NE(outcome.error().message.find("rank 1"), std::string::npos);
}

TEST(WireFailure, leaves_no_destruction_that_waits_for_the_lost) {
  Group group({.members = 2});
  group.deadline = 20ms;
  group.fabric().lose(1, 0, simulated::Loss::silent);
  CallBuffer buffer(fcclCollAllGather, 9000);
  EXPECT_FALSE(group.call(0, buffer.call, 1, "pairwise"));
  EXPECT_FALSE(group.endpoint(0).settle(Deadline::after(1ms)));
  group.destroy(0);
  group.destroy(1);
}

TEST(WireFailure, of_a_rail_ends_the_calls_of_every_lane) {
  std::atomic<bool> breaks{false};
  Group group({.members = 2, .lanes = 2}, {}, [&](int, std::unique_ptr<Transport> transport) {
    auto bent = std::make_unique<BentTransport>(std::move(transport));
    bent->poll_fails = &breaks;
    return bent;
  });
  ASSERT_TRUE(run_calls(group, {.way = {fcclCollAllGather, "pairwise"}, .count = 3000}));
  breaks = true;
  for (int lane = 0; lane < 2; ++lane) {
    CallBuffer buffer(fcclCollAllGather, 100);
    const auto outcome = group.call(0, buffer.call, 1, "entries", lane);
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().message, "rail 0 of the network: the card is gone");
  }
}

TEST(WireFailure, of_a_transport_that_ends_what_was_not_begun_ends_the_calls) {
  std::atomic<bool> invents{false};
  Group group({.members = 2}, {}, [&](int member, std::unique_ptr<Transport> transport) {
    auto bent = std::make_unique<BentTransport>(std::move(transport));
    if (member == 0) bent->invents = &invents;
    bent->invention = {.kind = Completion::Kind::ended, .tag = 123456};
    return bent;
  });
  ASSERT_TRUE(run_calls(group, {.way = {fcclCollAllGather, "pairwise"}, .count = 3000}));
  invents = true;
  CallBuffer buffer(fcclCollAllGather, 100);
  const auto outcome = group.call(0, buffer.call, 1, "entries");
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().message, "the transport ended operation 123456, which it does not have");
  group.destroy(0);
  group.destroy(1);
}

TEST(WireFailure, is_not_what_a_stranger_sends) {
  std::atomic<bool> invents{false};
  Group group({.members = 2}, {}, [&](int, std::unique_ptr<Transport> transport) {
    auto bent = std::make_unique<BentTransport>(std::move(transport));
    bent->invents = &invents;
    bent->invention = {.kind = Completion::Kind::stranger};
    return bent;
  });
  invents = true;
  EXPECT_TRUE(run_calls(group, {.way = {fcclCollAllGather, "pairwise"}, .count = 3000}));
  EXPECT_FALSE(invents);
}

TEST(WireFailure, of_an_operation_that_cannot_be_posted_names_the_peer) {
  std::atomic<bool> breaks{false};
  Group group({.members = 2}, {}, [&](int, std::unique_ptr<Transport> transport) {
    auto bent = std::make_unique<BentTransport>(std::move(transport));
    bent->post_fails = &breaks;
    return bent;
  });
  ASSERT_TRUE(run_calls(group, {.way = {fcclCollAllGather, "pairwise"}, .count = 3000}));
  breaks = true;
  CallBuffer buffer(fcclCollAllGather, 3000);
  const auto outcome = group.call(0, buffer.call, 1, "pairwise");
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().message, "sending to rank 1 over the network failed: the peer is not known");
}

// Somebody who sends to member 0 what no lane would send, though a peer of its endpoint, and who knows its token.
class WireIntruder : public ::testing::Test {
 public:
  ~WireIntruder() override { intruder.reset(); }

 protected:
  WireIntruder() : group({.members = 2}), intruder(group.fabric().open()) {
    const Introduction& target = group.lane(0).introduction();
    peer = *intruder->connect(0, std::span(target.rail[0].address).first(target.rail[0].address_bytes));
    memory = *intruder->register_memory(bytes, PeersMay::nothing);
    EXPECT_TRUE(group.endpoint(0).connect(0, intruder->address(0)));
  }
  // As the peer would say it, that is member 1.
  EntryMessage entry_of_peer() {
    EntryMessage entry;
    entry.kind = EntryMessage::kCall;
    entry.channel = group.lane(0).introduction().first_channel;
    entry.sequence = 0xfffffffe;
    entry.consumed = kFirstMessage;
    entry.token = group.lane(0).introduction().token;
    return entry;
  }
  void send(const void* what, size_t size) {
    std::memcpy(bytes.data(), what, size);
    post(
        {.kind = Operation::Kind::message, .peer = peer, .memory = memory, .local = bytes.data(), .bytes = size, .remote = {}});
  }
  void write_nothing(uint32_t immediate) {
    post({.kind = Operation::Kind::write, .peer = peer, .memory = memory, .remote = {}, .immediate = immediate});
  }
  void post(const Operation& operation) {
    ASSERT_EQ(intruder->post(0, {&operation, 1}).value_or(0), 1u);
    std::array<Completion, 4> found;
    const Deadline deadline = Deadline::after(20s);
    for (size_t ended = 0; ended == 0 && !deadline.passed(); std::this_thread::yield())
      ended = intruder->poll(0, found).value_or(0);
    // The lane finds a message at the latest at the next poll but one.
    for (int i = 0; i < 3; ++i) group.lane(0).progress();
    ASSERT_TRUE(group.endpoint(0).settle(deadline));
  }
  std::string distrust() { return group.lane(0).failure_of(1).value_or(Error{}).message; }
  // After something that must be ignored.
  void expect_that_calls_go_on() {
    EXPECT_EQ(distrust(), "");
    EXPECT_TRUE(run_calls(group, {.way = {fcclCollAllGather, "pairwise"}, .count = 3000, .times = 3}));
  }

  Group group;
  Bytes bytes = Bytes(4096);
  std::unique_ptr<Transport> intruder;
  PeerId peer{};
  MemoryId memory{};
};

TEST_F(WireIntruder, that_knows_no_channel_is_not_heard) {
  EntryMessage entry = entry_of_peer();
  entry.channel += 77;
  send(&entry, sizeof(entry));
  write_nothing((entry.channel << kMessageBits) + 3);
  expect_that_calls_go_on();
}

TEST_F(WireIntruder, that_does_not_know_the_token_is_not_heard) {
  EntryMessage entry = entry_of_peer();
  entry.sequence += 1;  // the lane would find this entry
  entry.token ^= uint64_t{1} << 63;
  send(&entry, sizeof(entry));
  entry.kind = EntryMessage::kCredit;
  entry.consumed = kFirstMessage + 1;
  send(&entry, sizeof(entry));
  expect_that_calls_go_on();
}

TEST_F(WireIntruder, whose_message_is_too_short_is_not_heard) {
  const EntryMessage entry = entry_of_peer();
  send(&entry, 63);
  expect_that_calls_go_on();
}

TEST_F(WireIntruder, that_enters_a_call_that_cannot_be_is_found) {
  EntryMessage entry = entry_of_peer();
  entry.sequence += 1;
  send(&entry, sizeof(entry));
  EXPECT_NE(distrust().find("rank 1 does not keep to the protocol: it entered call 4294967295"), std::string::npos);
}

TEST_F(WireIntruder, that_enters_a_call_twice_is_found) {
  const EntryMessage entry = entry_of_peer();
  send(&entry, sizeof(entry));
  EXPECT_EQ(distrust(), "");
  send(&entry, sizeof(entry));
  EXPECT_NE(distrust(), "");
}

TEST_F(WireIntruder, that_names_no_collective_type_or_operator_is_found) {
  EntryMessage entry = entry_of_peer();
  entry.signature = words_of({.collective = fcclNumColls});
  send(&entry, sizeof(entry));
  EXPECT_NE(distrust(), "");
}

TEST_F(WireIntruder, whose_payload_is_longer_than_agreed_is_found) {
  const EntryMessage entry = entry_of_peer();
  Bytes message(sizeof(entry) + 1000);
  std::memcpy(message.data(), &entry, sizeof(entry));
  send(message.data(), message.size());
  EXPECT_NE(distrust(), "");
}

TEST_F(WireIntruder, that_grants_more_than_was_sent_is_found) {
  EntryMessage entry = entry_of_peer();
  entry.kind = EntryMessage::kCredit;
  entry.consumed = kFirstMessage + 1;
  send(&entry, sizeof(entry));
  EXPECT_NE(distrust().find("took more messages than it was sent"), std::string::npos);
}

TEST_F(WireIntruder, that_writes_outside_the_window_is_found) {
  write_nothing((entry_of_peer().channel << kMessageBits) | ((kFirstMessage + 4) & 0xff));
  EXPECT_NE(distrust().find("it wrote message"), std::string::npos);
}

}  // namespace
}  // namespace fccl::core::testing
