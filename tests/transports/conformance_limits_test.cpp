// The conformance suite: limits, and what happens at them.
#include <algorithm>
#include <limits>
#include <set>

#include "transports/conformance.h"

namespace fccl::core {

namespace {

using Kind = Completion::Kind;

TEST_P(Conformance, limits_are_such_that_one_can_work_with_them) {
  ASSERT_TRUE(open(2)) << why_not;
  for (const Process& process : processes) {
    const TransportLimits& limits = process.transport->limits();
    EXPECT_EQ(limits.rails, 1);
    EXPECT_GE(limits.write_bytes, 1u);
    EXPECT_GE(limits.message_bytes, 64u);
    EXPECT_GE(limits.outstanding, 1);
    EXPECT_GE(limits.immediate_bits, 1);
    EXPECT_LE(limits.immediate_bits, 32);
    EXPECT_FALSE(process.transport->description().empty());
    const size_t bytes = process.transport->address(0).size();
    EXPECT_GE(bytes, 1u);
    EXPECT_LE(bytes, Transport::kAddressBytes);
  }
}

TEST_P(Conformance, an_operation_of_a_forbidden_size_is_refused_and_the_next_goes_on) {
  ASSERT_TRUE(open(2)) << why_not;
  std::vector<Operation> refused = {message({}, 0, 0), message({}, 0, limits().message_bytes + 1)};
  if (limits().write_bytes < std::numeric_limits<size_t>::max()) {
    refused.push_back(write({}, 0, limits().write_bytes + 1, 0));
  }
  for (const Operation& operation : refused) {
    const auto posted = transport(0).post(0, std::span(&operation, 1));
    ASSERT_FALSE(posted) << operation.bytes << " bytes were posted";
    EXPECT_EQ(posted.error().code, fcclInvalidArgument);
    EXPECT_FALSE(posted.error().message.empty());
  }
  post({}, write({}, 0, 1, 0));
  expect_copy(0, 0, 1, 1, 0);
  ASSERT_TRUE(drive_until([&] { return count(1, Kind::arrived) == 1 && count(0, Kind::ended) == 1; }));
  expect_memory();
}

TEST_P(Conformance, what_stands_before_a_refused_operation_is_posted) {
  ASSERT_TRUE(open(2)) << why_not;
  const std::vector<Operation> operations = {write({}, 0, 8, 0, 1), message({}, 0, limits().message_bytes + 1),
                                             write({}, 8, 8, 8, 2)};
  std::span<const Operation> rest = operations;
  bool refused = false;
  ASSERT_TRUE(drive_until([&] {
    const auto posted = transport(0).post(0, rest);
    refused = !posted;
    if (posted) rest = rest.subspan(*posted);
    return refused || rest.size() < 2;
  }));
  EXPECT_TRUE(refused);
  EXPECT_EQ(rest.size(), 2u);
  expect_copy(0, 0, 8, 1, 0);
  ASSERT_TRUE(drive_until([&] { return count(1, Kind::arrived) == 1 && count(0, Kind::ended) == 1; }));
  drive(50);
  EXPECT_EQ(process(1).found.size(), 1u);
  expect_memory();
}

TEST_P(Conformance, a_full_rail_takes_a_prefix_and_goes_on_after_polls) {
  ASSERT_TRUE(open(2)) << why_not;
  const auto window = static_cast<size_t>(limits().outstanding);
  const size_t more = window + 37;
  fill(0, 0, 1000, 1);
  std::vector<Operation> operations;
  for (size_t i = 0; i < more; ++i) operations.push_back(write({}, i % 1000, 1, i % 1000, bits_of(static_cast<uint32_t>(i))));
  for (size_t i = 0; i < more; ++i) expect_copy(0, i % 1000, 1, 1, i % 1000);
  const auto posted = transport(0).post(0, operations);
  ASSERT_TRUE(posted) << posted.error().message;
  EXPECT_LE(*posted, window);
  post({}, std::span(operations).subspan(*posted));
  ASSERT_TRUE(drive_until([&] { return count(1, Kind::arrived) == more && count(0, Kind::ended) == more; }));
  drive(50);
  std::multiset<uint32_t> arrived;
  for (const Finding& finding : process(1).found) arrived.insert(bits_of(finding.immediate));
  std::multiset<uint64_t> ended;
  for (const Finding& finding : process(0).found) ended.insert(finding.tag);
  std::multiset<uint32_t> sent;
  std::multiset<uint64_t> tags;
  for (const Operation& operation : operations) sent.insert(operation.immediate), tags.insert(operation.tag);
  EXPECT_EQ(arrived, sent);
  EXPECT_EQ(ended, tags);
  expect_memory();
}

TEST_P(Conformance, operations_whose_ends_are_not_polled_stay_below_the_window) {
  ASSERT_TRUE(open(2)) << why_not;
  const auto window = static_cast<size_t>(limits().outstanding);
  size_t posted = 0;
  for (int attempt = 0; attempt < 100; ++attempt) {
    const std::vector<Operation> operations(1, write({}, 0, 1, 0));
    const auto took = transport(0).post(0, operations);
    ASSERT_TRUE(took) << took.error().message;
    posted += *took;
    poll(1);
    ASSERT_LE(posted, window);
    if (posted == window) break;
  }
  expect_copy(0, 0, 1, 1, 0);
  ASSERT_TRUE(drive_until([&] { return count(1, Kind::arrived) == posted && count(0, Kind::ended) == posted; }));
}

TEST_P(Conformance, more_messages_than_there_is_room_for_are_late_but_not_lost) {
  ASSERT_TRUE(open(2, 1, 2)) << why_not;
  constexpr size_t kMessages = 48;
  std::vector<Operation> operations;
  for (uint32_t i = 0; i < kMessages; ++i) {
    fill(0, i * 32, 32, i);
    operations.push_back(message({}, i * 32, 32));
  }
  // The peer does not look for a while.
  std::span<const Operation> rest = operations;
  for (int round = 0; round < 200; ++round) {
    const auto posted = transport(0).post(0, rest);
    ASSERT_TRUE(posted) << posted.error().message;
    rest = rest.subspan(*posted);
    poll(0);
  }
  post({}, rest);
  ASSERT_TRUE(drive_until([&] { return count(1, Kind::message) >= kMessages && count(0, Kind::ended) == kMessages; }));
  drive(50);
  std::multiset<std::string> came;
  std::multiset<std::string> sent;
  for (const Finding& finding : process(1).found) came.insert(text(finding.bytes));
  for (size_t i = 0; i < kMessages; ++i) {
    sent.insert(text(expected(0, i * 32, 32)));
  }
  EXPECT_EQ(came, sent);
}

TEST_P(Conformance, room_for_messages_may_be_made_later) {
  ASSERT_TRUE(open(2, 1, 1)) << why_not;
  for (uint32_t i = 0; i < 8; ++i) post({}, message({}, i, 1));
  ASSERT_TRUE(drive_until([&] { return count(1, Kind::message) == 8; }));
  const auto reserved = transport(1).reserve_messages(16);
  ASSERT_TRUE(reserved) << reserved.error().message;
  for (uint32_t i = 0; i < 32; ++i) post({}, message({}, i, 1));
  ASSERT_TRUE(drive_until([&] { return count(1, Kind::message) == 40 && count(0, Kind::ended) == 40; }));
}

}  // namespace

}  // namespace fccl::core
