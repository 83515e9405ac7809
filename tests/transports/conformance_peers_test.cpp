// The conformance suite: several peers, several rails, and peers that are gone.
#include <algorithm>
#include <atomic>
#include <set>
#include <thread>
#include <utility>

#include "transports/conformance.h"
#include "transports/dice.h"

namespace fccl::core {

namespace {

using Kind = Completion::Kind;

TEST_P(Conformance, both_directions_work_at_once) {
  ASSERT_TRUE(open(2)) << why_not;
  const size_t bytes = writable(5003);
  constexpr uint32_t kEach = 20;
  for (uint32_t i = 0; i < kEach; ++i) {
    for (const Way way : {Way{.from = 0, .to = 1}, Way{.from = 1, .to = 0}}) {
      const size_t here = i * bytes;
      const size_t there = kMemoryBytes / 2 + i * bytes;
      fill(way.from, here, bytes, i);
      expect_copy(way.from, here, bytes, way.to, there);
      post(way, write(way, here, bytes, there, i));
    }
  }
  ASSERT_TRUE(drive_until([&] { return count(0, Kind::arrived) == kEach && count(1, Kind::arrived) == kEach; }));
  expect_memory();
}

TEST_P(Conformance, a_process_may_be_its_own_peer) {
  ASSERT_TRUE(open(1)) << why_not;
  const Way self{.from = 0, .to = 0};
  fill(0, 10, 1000, 1);
  expect_copy(0, 10, 1000, 0, 5001);
  post(self, write(self, 10, 1000, 5001, 9));
  ASSERT_TRUE(drive_until([&] { return count(0, Kind::arrived) == 1 && count(0, Kind::ended) == 1; }));
  post(self, message(self, 10, 64));
  ASSERT_TRUE(drive_until([&] { return count(0, Kind::message) == 1 && count(0, Kind::ended) == 2; }));
  const auto came = std::ranges::find(process(0).found, Kind::message, &Finding::kind);
  EXPECT_TRUE(std::ranges::equal(came->bytes, expected(0, 10, 64)));
  expect_memory();
}

// A process that connected without being a peer is heard once it is a peer.
TEST_P(Conformance, a_message_of_who_is_no_peer_is_not_passed_on) {
  ASSERT_TRUE(open(2)) << why_not;
  const Way way{.from = 0, .to = 1};
  Operation operation = {.kind = Operation::Kind::message,
                         .peer = connected(way),
                         .memory = process(0).memory,
                         .local = process(0).bytes.data(),
                         .bytes = 64,
                         .remote = {},
                         .immediate = 0,
                         .tag = uint64_t{1} << 40};
  post(way, operation);
  ASSERT_TRUE(drive_until([&] { return count(1, Kind::stranger) == 1; }));
  EXPECT_EQ(process(1).found.size(), 1u);
  EXPECT_TRUE(process(1).found[0].bytes.empty());
  connected({.from = 1, .to = 0});
  ++operation.tag;
  post(way, operation);
  ASSERT_TRUE(drive_until([&] { return count(1, Kind::message) == 1; }));
  EXPECT_EQ(count(1, Kind::stranger), 1u);
}

TEST_P(Conformance, two_peers_write_into_one_process_at_once) {
  ASSERT_TRUE(open(3)) << why_not;
  const size_t bytes = writable(2001);
  constexpr uint32_t kEach = 30;
  std::multiset<uint32_t> sent;
  for (uint32_t i = 0; i < kEach; ++i) {
    for (const int from : {1, 2}) {
      const Way way{.from = from, .to = 0};
      const uint32_t immediate = i * 2 + static_cast<uint32_t>(from) - 1;
      const size_t there = immediate * bytes;
      fill(from, i * bytes, bytes, immediate);
      expect_copy(from, i * bytes, bytes, 0, there);
      post(way, write(way, i * bytes, bytes, there, immediate));
      sent.insert(immediate);
    }
  }
  ASSERT_TRUE(drive_until([&] { return count(0, Kind::arrived) == 2 * kEach; }));
  std::multiset<uint32_t> arrived;
  for (const Finding& finding : process(0).found) arrived.insert(finding.immediate);
  EXPECT_EQ(arrived, sent);
  expect_memory();
}

TEST_P(Conformance, every_rail_carries_its_own) {
  if (!open(2, 2)) GTEST_SKIP() << why_not;
  ASSERT_EQ(limits().rails, 2);
  const size_t bytes = writable(3003);
  constexpr uint32_t kEach = 20;
  for (uint32_t i = 0; i < 2 * kEach; ++i) {
    const Way way{.from = 0, .to = 1, .rail = static_cast<int>(i % 2)};
    fill(0, i * bytes, bytes, i);
    expect_copy(0, i * bytes, bytes, 1, i * bytes + 1);
    post(way, write(way, i * bytes, bytes, i * bytes + 1, i));
    post(way, message(way, i * bytes, 1 + i % 2));
  }
  ASSERT_TRUE(drive_until([&] {
    return count(1, Kind::arrived) == 2 * kEach && count(1, Kind::message) == 2 * kEach && count(0, Kind::ended) == 4 * kEach;
  }));
  for (const Finding& finding : process(1).found) {
    const uint32_t rail =
        finding.kind == Kind::arrived ? finding.immediate % 2 : static_cast<uint32_t>(finding.bytes.size()) - 1;
    EXPECT_EQ(finding.rail, static_cast<int>(rail));
  }
  expect_memory();
}

TEST_P(Conformance, operations_to_a_peer_that_is_gone_fail_and_others_go_on) {
  ASSERT_TRUE(open(3)) << why_not;
  const Way to_gone{.from = 0, .to = 1};
  const Way to_other{.from = 0, .to = 2};
  post(to_gone, write(to_gone, 0, 8, 0, 1));
  expect_copy(0, 0, 8, 1, 0);
  ASSERT_TRUE(drive_until([&] { return count(1, Kind::arrived) == 1 && count(0, Kind::ended) == 1; }));
  const Operation late = write(to_gone, 0, 8, 8, 2);
  process(1).transport.reset();
  bool refused = false;
  Operation next = late;
  // A network may take some before it notices.
  ASSERT_TRUE(drive_until([&] {
    next.tag += 1000;
    const auto posted = transport(0).post(0, std::span(&next, 1));
    EXPECT_TRUE(posted || !posted.error().message.empty());
    refused = refused || !posted;
    return refused || count(0, Kind::failed) > 0;
  }));
  for (const Finding& finding : process(0).found) {
    if (finding.kind != Kind::failed) continue;
    const Error error = transport(0).error_of(finding.tag);
    EXPECT_NE(error.code, fcclSuccess);
    EXPECT_FALSE(error.message.empty());
  }
  const size_t bytes = writable(5000);
  fill(0, 100, bytes, 3);
  expect_copy(0, 100, bytes, 2, 7);
  post(to_other, write(to_other, 100, bytes, 7, 4));
  ASSERT_TRUE(drive_until([&] { return count(2, Kind::arrived) == 1; }));
  expect_memory();
}

TEST_P(Conformance, transports_go_with_operations_outstanding) {
  for (const bool target_first : {false, true}) {
    ASSERT_TRUE(open(2)) << why_not;
    const size_t bytes = writable(4000);
    std::vector<Operation> operations;
    for (uint32_t i = 0; i < 8; ++i) {
      operations.push_back(write({}, i * bytes, bytes, i * bytes, i));
      operations.push_back(message({}, i * 64, 64));
    }
    ASSERT_TRUE(transport(0).post(0, operations));
    drive(1);
    process(target_first ? 1 : 0).transport.reset();
    drive(20);
    process(target_first ? 0 : 1).transport.reset();
  }
}

TEST_P(Conformance, bytes_that_are_no_address_are_refused_or_lead_to_failures) {
  ASSERT_TRUE(open(2)) << why_not;
  std::vector<std::vector<std::byte>> addresses = {
      {}, std::vector<std::byte>(7, std::byte{0xff}), std::vector<std::byte>(Transport::kAddressBytes + 1, std::byte{1})};
  addresses.push_back(transport(1).address(0));
  addresses.back().pop_back();
  for (const auto& address : addresses) {
    const auto connected = transport(0).connect(0, address);
    if (!connected) {
      EXPECT_EQ(connected.error().code, fcclInvalidArgument);
      EXPECT_FALSE(connected.error().message.empty());
      continue;
    }
    Operation operation = write({}, 0, 1, 0);
    operation.peer = *connected;
    const size_t failures = count(0, Kind::failed);
    post({}, operation);
    ASSERT_TRUE(drive_until([&] { return count(0, Kind::failed) == failures + 1; })) << address.size() << " bytes";
  }
  expect_memory();
}

// Round after round, each writes what it has got plus one.
TEST_P(Conformance, each_process_may_be_driven_by_a_thread_of_its_own) {
  ASSERT_TRUE(open(2)) << why_not;
  constexpr uint32_t kRounds = 100;
  const Operation first[] = {write({.from = 0, .to = 1}, 0, 8, 64), write({.from = 1, .to = 0}, 0, 8, 64)};
  for (Process& process : processes) std::ranges::fill(process.bytes, std::byte{0});
  std::atomic<bool> stop{false};
  std::atomic<int> finished{0};
  const auto run = [&](int number) {
    Process& own = process(number);
    auto* mine = reinterpret_cast<uint64_t*>(own.bytes.data());
    Operation next = first[number];
    bool my_turn = number == 0;
    bool free = true;
    for (uint32_t round = 0; round < kRounds && !stop;) {
      if (my_turn && free) {
        mine[0] = mine[8] + 1;
        next.tag += 2;
        const auto posted = own.transport->post(0, std::span(&next, 1));
        const bool full = posted.value_or(0) == 0;
        my_turn = free = full;
        round += full ? 0 : 1;
      }
      Completion found[4];
      const auto number_found = own.transport->poll(0, found);
      for (size_t i = 0; i < number_found.value_or(0); ++i) {
        if (found[i].kind == Kind::ended) free = true;
        if (found[i].kind == Kind::arrived) my_turn = true;
      }
      std::this_thread::yield();
    }
    // The peer's last round needs our polls.
    for (++finished; finished < 2 && !stop; std::this_thread::yield()) {
      Completion found[4];
      static_cast<void>(own.transport->poll(0, found));
    }
  };
  std::thread other(run, 1);
  std::thread self(run, 0);
  const auto patience = std::chrono::steady_clock::now() + kPatience;
  while (finished < 2 && std::chrono::steady_clock::now() < patience) std::this_thread::yield();
  stop = true;
  self.join();
  other.join();
  EXPECT_EQ(finished, 2);
  EXPECT_EQ(reinterpret_cast<uint64_t*>(process(1).bytes.data())[0], 2 * kRounds);
}

// Everything at once between all processes, at places that do not overlap.
TEST_P(Conformance, a_random_mixture_is_right_to_the_byte) {
  ASSERT_TRUE(open(3)) << why_not;
  struct Part {
    std::vector<Operation> operations;
    size_t free = 0, arrivals = 0, messages = 0;
  };
  std::vector<Part> parts(3);
  simulated::Dice dice(17);
  const size_t most = std::min(writable(1500), limits().message_bytes);
  for (uint32_t i = 0; i < 400; ++i) {
    const Way way{.from = static_cast<int>(dice.up_to(2)), .to = static_cast<int>(dice.up_to(2))};
    Part& from = parts[static_cast<size_t>(way.from)];
    Part& to = parts[static_cast<size_t>(way.to)];
    const size_t bytes = 1 + static_cast<size_t>(dice.up_to(most - 1));
    const auto place = [&](Part& part) { return std::exchange(part.free, part.free + bytes + 1 + i % 5); };
    const size_t here = place(from);
    const size_t there = place(to);
    fill(way.from, here, bytes, i);
    if (dice.up_to(1) == 0) {
      expect_copy(way.from, here, bytes, way.to, there);
      from.operations.push_back(write(way, here, bytes, there, i % 128));
      ++to.arrivals;
    } else {
      from.operations.push_back(message(way, here, bytes));
      ++to.messages;
    }
  }
  for (int number = 0; number < 3; ++number) post({.from = number}, parts[static_cast<size_t>(number)].operations);
  const auto wanted = [&](size_t i) { return parts[i].operations.size() + parts[i].arrivals + parts[i].messages; };
  ASSERT_TRUE(drive_until([&] {
    return processes[0].found.size() >= wanted(0) && processes[1].found.size() >= wanted(1) &&
           processes[2].found.size() >= wanted(2);
  }));
  drive(50);
  for (size_t i = 0; i < parts.size(); ++i) {
    EXPECT_EQ(count(static_cast<int>(i), Kind::ended), parts[i].operations.size());
    EXPECT_EQ(count(static_cast<int>(i), Kind::arrived), parts[i].arrivals);
    EXPECT_EQ(count(static_cast<int>(i), Kind::message), parts[i].messages);
  }
  expect_memory();
}

}  // namespace

}  // namespace fccl::core
