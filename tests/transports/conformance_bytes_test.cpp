// The conformance suite: what operations do to bytes.
#include <algorithm>
#include <map>
#include <set>

#include "transports/conformance.h"

namespace fccl::core {

namespace {

using Kind = Completion::Kind;

TEST_P(Conformance, a_write_is_whole_when_it_arrives_and_touches_nothing_else) {
  ASSERT_TRUE(open(2)) << why_not;
  uint32_t immediate = 0;
  for (const size_t wanted : {size_t{1}, size_t{3}, size_t{64}, size_t{4097}, size_t{65537}, kMemoryBytes / 2 + 1}) {
    const size_t bytes = writable(wanted);
    const size_t here = 5 + immediate * 2;
    const size_t there = 77 + immediate;
    fill(0, here, bytes, immediate);
    expect_copy(0, here, bytes, 1, there);
    bool arrived = false;
    on_found = [&](int number, const Finding& finding) {
      if (finding.kind != Kind::arrived) return;
      EXPECT_EQ(number, 1);
      EXPECT_EQ(finding.immediate, immediate);
      EXPECT_TRUE(std::ranges::equal(actual(1, there, bytes), expected(1, there, bytes))) << bytes << " bytes";
      arrived = true;
    };
    const size_t ended = count(0, Kind::ended);
    post({}, write({}, here, bytes, there, immediate));
    ASSERT_TRUE(drive_until([&] { return arrived && count(0, Kind::ended) == ended + 1; }));
    expect_memory();
    ++immediate;
  }
}

TEST_P(Conformance, a_write_of_no_bytes_brings_its_immediate) {
  ASSERT_TRUE(open(2)) << why_not;
  post({}, write({}, 10, 0, 20, 0x5a));
  ASSERT_TRUE(drive_until([&] { return count(1, Kind::arrived) == 1 && count(0, Kind::ended) == 1; }));
  EXPECT_EQ(process(1).found[0].immediate, 0x5au);
  expect_memory();
}

TEST_P(Conformance, an_immediate_keeps_every_bit_that_the_limits_promise) {
  ASSERT_TRUE(open(2)) << why_not;
  std::multiset<uint32_t> sent;
  for (uint32_t bit = 0; bit < static_cast<uint32_t>(limits().immediate_bits); ++bit) sent.insert(uint32_t{1} << bit);
  for (const uint32_t word : {0u, 0xffffffffu, 0xaaaaaaaau, 0x55555555u, 0x12345678u}) sent.insert(bits_of(word));
  for (const uint32_t immediate : sent) post({}, write({}, 0, 1, 0, immediate));
  expect_copy(0, 0, 1, 1, 0);
  ASSERT_TRUE(drive_until([&] { return count(1, Kind::arrived) == sent.size(); }));
  std::multiset<uint32_t> arrived;
  for (const Finding& finding : process(1).found) arrived.insert(bits_of(finding.immediate));
  EXPECT_EQ(arrived, sent);
}

TEST_P(Conformance, every_message_comes_once_with_its_bytes) {
  ASSERT_TRUE(open(2)) << why_not;
  std::multiset<std::string> sent;
  std::multiset<std::string> came;
  on_found = [&](int number, const Finding& finding) {
    if (finding.kind != Kind::message) return;
    EXPECT_EQ(number, 1);
    came.insert(text(finding.bytes));
  };
  constexpr size_t kMessages = 150;
  size_t at = 1;
  for (uint32_t i = 0; i < kMessages; ++i) {
    const size_t sizes[] = {1, 2, 63, 64, 65, 1000, limits().message_bytes};
    const size_t bytes = std::min({sizes[i % std::size(sizes)], limits().message_bytes, size_t{8192}});
    fill(0, at, bytes, i);
    sent.insert(text(expected(0, at, bytes)));
    post({}, message({}, at, bytes));
    at += bytes;
  }
  ASSERT_TRUE(drive_until([&] { return came.size() >= kMessages && count(0, Kind::ended) == kMessages; }));
  drive(50);
  EXPECT_EQ(came, sent);
  expect_memory();
}

TEST_P(Conformance, the_largest_message_comes_whole) {
  ASSERT_TRUE(open(2)) << why_not;
  const size_t bytes = limits().message_bytes;
  if (bytes > kMemoryBytes - 1) GTEST_SKIP() << "messages of " << bytes << " bytes do not fit into the test's memory";
  fill(0, 1, bytes, 3);
  post({}, message({}, 1, bytes));
  ASSERT_TRUE(drive_until([&] { return count(1, Kind::message) == 1; }));
  EXPECT_TRUE(std::ranges::equal(process(1).found[0].bytes, expected(0, 1, bytes)));
}

// Also where `arrived` is polled after `ended`, and while other writes are under way.
TEST_P(Conformance, memory_may_be_used_again_once_its_operation_has_ended) {
  ASSERT_TRUE(open(2)) << why_not;
  constexpr size_t kSlots = 4;
  constexpr size_t kRounds = 60;
  const size_t bytes = writable(3001);
  std::map<uint64_t, size_t> slot_of;
  std::vector<bool> busy(kSlots);
  on_found = [&](int, const Finding& finding) {
    if (finding.kind == Kind::ended) {
      const size_t slot = slot_of.at(finding.tag);
      fill(0, slot * bytes, bytes, 0xdead);
      busy[slot] = false;
    } else if (finding.kind == Kind::arrived) {
      const size_t there = finding.immediate * bytes;
      EXPECT_TRUE(std::ranges::equal(actual(1, there, bytes), expected(1, there, bytes))) << "round " << finding.immediate;
    }
  };
  for (uint32_t round = 0; round < kRounds; ++round) {
    const size_t slot = round % kSlots;
    ASSERT_TRUE(drive_until([&] { return !busy[slot]; }));
    fill(0, slot * bytes, bytes, round);
    expect_copy(0, slot * bytes, bytes, 1, round * bytes);
    const Operation operation = write({}, slot * bytes, bytes, round * bytes, round);
    slot_of[operation.tag] = slot;
    busy[slot] = true;
    post({}, operation);
  }
  ASSERT_TRUE(drive_until([&] { return count(1, Kind::arrived) == kRounds && count(0, Kind::ended) == kRounds; }));
  expect_memory();
}

TEST_P(Conformance, a_poll_with_room_for_one_loses_nothing) {
  ASSERT_TRUE(open(2)) << why_not;
  room = 1;
  constexpr size_t kEach = 40;
  for (uint32_t i = 0; i < kEach; ++i) {
    post({}, write({}, i, 1, i, i));
    post({}, message({}, i, 1));
    post({.from = 1, .to = 0}, write({.from = 1, .to = 0}, kMemoryBytes / 2 + i, 1, kMemoryBytes / 2 + i, i));
    expect_copy(0, i, 1, 1, i);
    expect_copy(1, kMemoryBytes / 2 + i, 1, 0, kMemoryBytes / 2 + i);
  }
  ASSERT_TRUE(drive_until([&] {
    return count(1, Kind::arrived) == kEach && count(1, Kind::message) == kEach && count(0, Kind::arrived) == kEach &&
           count(0, Kind::ended) == 2 * kEach && count(1, Kind::ended) == kEach;
  }));
  drive(50);
  EXPECT_EQ(process(0).found.size(), 3 * kEach);
  EXPECT_EQ(process(1).found.size(), 3 * kEach);
  expect_memory();
}

TEST_P(Conformance, memory_is_released_and_registered_again) {
  ASSERT_TRUE(open(2)) << why_not;
  const size_t bytes = writable(1001);
  for (uint32_t round = 0; round < 10; ++round) {
    fill(0, 11, bytes, round);
    expect_copy(0, 11, bytes, 1, 500 + round);
    post({}, write({}, 11, bytes, 500 + round, round));
    ASSERT_TRUE(drive_until([&] { return count(1, Kind::arrived) == round + 1 && count(0, Kind::ended) == round + 1; }));
    expect_memory();
    for (Process& process : processes) {
      process.transport->release_memory(process.memory);
      process.transport->release_memory(process.landing);
      ASSERT_NO_FATAL_FAILURE(register_memory_of(process));
    }
  }
}

TEST_P(Conformance, several_memories_are_known_apart) {
  ASSERT_TRUE(open(2)) << why_not;
  std::vector<std::byte> other(5000, std::byte{0x11});
  const auto memory = transport(1).register_memory(other, PeersMay::write);
  ASSERT_TRUE(memory) << memory.error().message;
  Operation operation = write({}, 100, 300, 0, 1);
  operation.remote = transport(1).remote(*memory, 0);
  operation.remote.address += 4700;
  post({}, operation);
  post({}, write({}, 100, 300, 4700, 2));
  expect_copy(0, 100, 300, 1, 4700);
  ASSERT_TRUE(drive_until([&] { return count(1, Kind::arrived) == 2; }));
  expect_memory();
  EXPECT_TRUE(std::ranges::equal(std::span(other).subspan(4700), actual(0, 100, 300)));
  EXPECT_TRUE(std::ranges::all_of(std::span(other).first(4700), [](std::byte byte) { return byte == std::byte{0x11}; }));
  transport(1).release_memory(*memory);
}

}  // namespace

}  // namespace fccl::core
