// Tests of what the hosts tell each other of the network: facts that hold for all, hosts that differ, and nonsense.
#include "creation/network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace fccl::core {
namespace {

using ::testing::HasSubstr;

// Hosts of 2 and 3 ranks: ranks 0 and 2 are column 0, 1 and 3 are column 1, and 4 has none.
Columns columns_of(int rank) { return Columns({{0, 1}, {2, 3, 4}}, rank); }

// Which of a rank's lanes it is stands in its window.
Introduction introduction(int rank, int lane) {
  return {.members = 2, .window = 10 * rank + lane, .slot_bytes = 64, .rails = rank % 2 + 1, .rail = {}};
}

std::string end_of(int rank, const NetworkEnd& end) {
  std::string bytes;
  append(bytes, end);
  for (int lane = 0; lane < kLanes; ++lane) append(bytes, introduction(rank, lane));
  return bytes;
}

// The latency tells them apart.
CostConstants costs(double latency) { return {latency, 1e-6, 1e-9, 1e-10, 1e-10}; }

const NetworkEnd kEfa{"efa", 4, costs(2e-5)};
const NetworkEnd kTcp{"tcp", 2, costs(3e-5)};

Result<Network> read_as(int rank, const std::vector<std::string>& by_host) {
  return read_network(by_host, columns_of(rank), [](int each) { return "rank " + std::to_string(each) + " (pid 7)"; });
}

std::vector<std::string> both_hosts(const NetworkEnd& first, const NetworkEnd& second) {
  return {end_of(0, first) + end_of(1, first), end_of(2, second) + end_of(3, second)};
}

TEST(Network, has_the_rails_of_the_host_with_the_fewest_and_the_highest_of_each_cost) {
  const NetworkEnd slow_to_begin{
      "my-net.2", 4, {.latency = 3, .message = 1, .wire_byte = 1e-9, .added_byte = 5e-9, .host_byte = 1e-9}},
      slow_to_write{"my-net.2", 2, {.latency = 1, .message = 2, .wire_byte = 4e-9, .added_byte = 1e-9, .host_byte = 6e-9}};
  for (const int rank : {0, 3, 4})
    for (const auto& by_host : {both_hosts(slow_to_begin, slow_to_write), both_hosts(slow_to_write, slow_to_begin)}) {
      const auto network = read_as(rank, by_host);
      ASSERT_TRUE(network) << network.error().message;
      EXPECT_EQ(network->provider, "my-net.2");
      EXPECT_EQ(network->rails, 2);
      EXPECT_EQ(network->costs.latency, 3);
      EXPECT_EQ(network->costs.message, 2);
      EXPECT_EQ(network->costs.wire_byte, 4e-9);
      EXPECT_EQ(network->costs.added_byte, 5e-9);
      EXPECT_EQ(network->costs.host_byte, 6e-9);
    }
}

TEST(Network, introduces_the_members_of_the_column_of_the_rank_that_reads) {
  const auto network = read_as(3, both_hosts(kEfa, kEfa));
  ASSERT_TRUE(network) << network.error().message;
  for (int lane = 0; lane < kLanes; ++lane) {
    const std::vector<Introduction>& introductions = network->introductions[static_cast<size_t>(lane)];
    ASSERT_EQ(introductions.size(), 2u);
    EXPECT_EQ(introductions[0].window, 10 + lane);
    EXPECT_EQ(introductions[1].window, 30 + lane);
    EXPECT_EQ(introductions[1].rails, 2);
  }
}

Address place_of(int rank) { return {false, {10, 0, 0, static_cast<uint8_t>(rank)}, static_cast<uint16_t>(29600 + rank)}; }

std::string ends_of(const std::vector<int>& ranks) {
  std::string bytes;
  for (const int rank : ranks) append(bytes, RankEnd{introduction(rank, 0), place_of(rank)});
  return bytes;
}

TEST(RankEnds, are_those_of_every_rank) {
  const auto all = read_rank_ends({ends_of({0, 1}), ends_of({2, 3, 4})}, columns_of(3));
  ASSERT_TRUE(all) << all.error().message;
  ASSERT_EQ(all->size(), 5u);
  for (int rank = 0; rank < 5; ++rank) {
    const RankEnd& end = (*all)[static_cast<size_t>(rank)];
    EXPECT_EQ(end.transfers.window, 10 * rank);
    EXPECT_EQ(end.transfers.rails, rank % 2 + 1);
    EXPECT_EQ(end.meeting_place, place_of(rank));
  }
}

TEST(RankEnds, of_a_host_that_tells_too_little_or_too_much_are_refused) {
  const std::string first = ends_of({0, 1}), second = ends_of({2, 3, 4});
  EXPECT_FALSE(read_rank_ends({first}, columns_of(0)));
  EXPECT_FALSE(read_rank_ends({first, second.substr(1)}, columns_of(0)));
  EXPECT_FALSE(read_rank_ends({first, second + "x"}, columns_of(0)));
  EXPECT_FALSE(read_rank_ends({ends_of({0, 1, 2}), second}, columns_of(0)));
}

TEST(RankEnds, without_a_port_are_refused) {
  std::string nowhere;
  append(nowhere, RankEnd{introduction(0, 0), Address{}});
  EXPECT_FALSE(read_rank_ends({nowhere + ends_of({1}), ends_of({2, 3, 4})}, columns_of(0)));
}

TEST(Network, introduces_nobody_to_a_rank_without_a_column) {
  const auto network = read_as(4, both_hosts(kEfa, kEfa));
  ASSERT_TRUE(network) << network.error().message;
  for (const auto& introductions : network->introductions) EXPECT_TRUE(introductions.empty());
}

TEST(Network, of_two_providers_is_refused_with_a_rank_of_each_and_the_setting) {
  for (const int rank : {0, 4}) {
    const auto network = read_as(rank, both_hosts(kEfa, kTcp));
    ASSERT_FALSE(network);
    EXPECT_EQ(network.error().code, fcclInvalidUsage);
    for (const char* said : {"rank 0 (pid 7) takes efa", "rank 2 (pid 7) takes tcp", "set FCCL_TRANSPORT to",
                             "set FCCL_TRANSPORT_PLUGIN on all hosts"})
      EXPECT_THAT(network.error().message, HasSubstr(said));
  }
}

void expect_refused(const std::vector<std::string>& by_host) {
  const auto network = read_as(0, by_host);
  ASSERT_FALSE(network);
  EXPECT_EQ(network.error().code, fcclInternalError);
}

TEST(Network, of_fewer_hosts_than_there_are_is_refused) { expect_refused({end_of(0, kEfa) + end_of(1, kEfa)}); }

TEST(Network, of_bytes_cut_anywhere_is_refused) {
  const std::vector<std::string> whole = both_hosts(kEfa, kEfa);
  for (size_t size = 0; size < whole[1].size(); ++size) expect_refused({whole[0], whole[1].substr(0, size)});
}

TEST(Network, of_bytes_that_nobody_asked_for_is_refused) {
  std::vector<std::string> more = both_hosts(kEfa, kEfa);
  more[0] += '\0';
  expect_refused(more);
}

TEST(Network, of_numbers_that_mean_nothing_is_refused) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const NetworkEnd& wrong :
       {NetworkEnd{"efa", 0, costs(1)}, NetworkEnd{"efa", -1, costs(1)}, NetworkEnd{"efa", 1, costs(0)},
        NetworkEnd{"efa", 1, costs(-1)}, NetworkEnd{"efa", 1, costs(nan)}, NetworkEnd{"efa", 1, {}},
        NetworkEnd{"", 1, costs(1)}, NetworkEnd{"tc\np", 1, costs(1)}, NetworkEnd{std::string("tcp\xff"), 1, costs(1)}})
    expect_refused(both_hosts(wrong, wrong));
}

// The bytes of an introduction whose rails are equal; their number, which ends what comes before them, may be any.
std::string introduction_of_rails(int rails) {
  Introduction one = introduction(0, 0), none = one;
  one.rails = 1;
  none.rails = 0;
  std::string bytes, with_rail;
  append(bytes, none);
  append(with_rail, one);
  const std::string rail = with_rail.substr(bytes.size());
  bytes.back() = static_cast<char>(rails);
  for (int i = 0; i < rails; ++i) bytes += rail;
  return bytes;
}

TEST(Network, of_more_rails_than_an_introduction_has_is_refused) {
  for (const int rails : {Introduction::kMostRails, Introduction::kMostRails + 1}) {
    std::vector<std::string> by_host = both_hosts(kEfa, kEfa);
    std::string end;
    append(end, kEfa);
    for (int lane = 0; lane < kLanes; ++lane) end += introduction_of_rails(rails);
    by_host[0] = end + end_of(1, kEfa);
    EXPECT_EQ(read_as(0, by_host).has_value(), rails == Introduction::kMostRails);
  }
}

TEST(RankEnds, keep_every_number_and_address) {
  RankEnd end{introduction(1, 0), {true, {0xfd, 0, 1}, 29600}};
  end.transfers.members = INT32_MAX;
  end.transfers.slot_bytes = UINT64_MAX;
  end.transfers.write_bytes = 0;
  end.transfers.payload_bytes = 128;
  end.transfers.immediate_bits = 64;
  end.transfers.first_channel = 0xfffffff0;
  end.transfers.token = 0x8000000000000001;
  end.transfers.rails = 2;
  for (size_t rail = 0; rail < 2; ++rail) {
    Introduction::Rail& of_rail = end.transfers.rail[rail];
    of_rail.address_bytes = rail == 0 ? 1 : Transport::kAddressBytes;
    for (size_t i = 0; i < of_rail.address_bytes; ++i) of_rail.address[i] = static_cast<std::byte>(7 * i + rail + 1);
    of_rail.landing = {0x7fff00000000 + rail, UINT64_MAX - rail};
  }
  std::string bytes;
  append(bytes, end);
  const auto all = read_rank_ends({bytes + ends_of({1}), ends_of({2, 3, 4})}, columns_of(0));
  ASSERT_TRUE(all) << all.error().message;
  EXPECT_EQ(all->front().meeting_place, end.meeting_place);
  const Introduction& read = all->front().transfers;
  EXPECT_EQ(read.members, INT32_MAX);
  EXPECT_EQ(read.slot_bytes, UINT64_MAX);
  EXPECT_EQ(read.token, end.transfers.token);
  EXPECT_EQ(read.first_channel, end.transfers.first_channel);
  EXPECT_EQ(read.rail[1].address, end.transfers.rail[1].address);
  EXPECT_EQ(read.rail[1].landing.key, UINT64_MAX - 1);
  std::string again;
  append(again, all->front());
  EXPECT_EQ(again, bytes);
}

}  // namespace
}  // namespace fccl::core
