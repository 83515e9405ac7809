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

Address place_of(int rank) { return {false, {10, 0, 0, static_cast<uint8_t>(rank)}, static_cast<uint16_t>(29600 + rank)}; }

// Rank 4 has no column.
RankEnd end_of(int rank, const NetworkEnd& network) {
  RankEnd end{introduction(rank, kLanes), place_of(rank)};
  if (rank == 4) return end;
  end.column = ColumnEnd{network};
  for (int lane = 0; lane < kLanes; ++lane) end.column->lanes[static_cast<size_t>(lane)] = introduction(rank, lane);
  return end;
}

std::string bytes_of(const RankEnd& end) {
  std::string bytes;
  append(bytes, end);
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
  return {bytes_of(end_of(0, first)) + bytes_of(end_of(1, first)),
          bytes_of(end_of(2, second)) + bytes_of(end_of(3, second)) + bytes_of(end_of(4, second))};
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

TEST(Network, tells_the_transfer_lane_and_the_meeting_place_of_every_rank) {
  for (const int rank : {0, 4}) {
    const auto network = read_as(rank, both_hosts(kEfa, kEfa));
    ASSERT_TRUE(network) << network.error().message;
    ASSERT_EQ(network->transfers.size(), 5u);
    ASSERT_EQ(network->meeting_places.size(), 5u);
    for (int each = 0; each < 5; ++each) {
      const Introduction& transfers = network->transfers[static_cast<size_t>(each)];
      EXPECT_EQ(transfers.window, 10 * each + kLanes);
      EXPECT_EQ(transfers.rails, each % 2 + 1);
      EXPECT_EQ(network->meeting_places[static_cast<size_t>(each)], place_of(each));
    }
  }
}

TEST(Network, of_a_rank_that_cannot_be_met_is_refused) {
  RankEnd nowhere = end_of(0, kEfa);
  nowhere.meeting_place = {};
  std::vector<std::string> by_host = both_hosts(kEfa, kEfa);
  by_host[0] = bytes_of(nowhere) + bytes_of(end_of(1, kEfa));
  EXPECT_FALSE(read_as(0, by_host));
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

TEST(Network, of_fewer_hosts_than_there_are_is_refused) { expect_refused({both_hosts(kEfa, kEfa).front()}); }

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

TEST(Network, of_a_rank_with_a_column_where_there_is_none_or_without_one_where_it_has_one_is_refused) {
  std::vector<std::string> by_host = both_hosts(kEfa, kEfa);
  RankEnd more = end_of(4, kEfa), less = end_of(1, kEfa);
  more.column = ColumnEnd{kEfa};
  less.column.reset();
  expect_refused({by_host[0], bytes_of(end_of(2, kEfa)) + bytes_of(end_of(3, kEfa)) + bytes_of(more)});
  expect_refused({bytes_of(end_of(0, kEfa)) + bytes_of(less), by_host[1]});
}

TEST(Network, of_more_rails_than_an_introduction_has_is_refused) {
  const std::vector<std::string> by_host = both_hosts(kEfa, kEfa);
  RankEnd most = end_of(0, kEfa);
  most.transfers.rails = Introduction::kMostRails;
  for (Introduction& lane : most.column->lanes) lane.rails = Introduction::kMostRails;
  const std::string good = bytes_of(most);
  EXPECT_TRUE(read_as(0, {good + bytes_of(end_of(1, kEfa)), by_host[1]}));
  // The number of rails follows two numbers of one byte each.
  ASSERT_EQ(good[2], Introduction::kMostRails);
  std::string more = good;
  more[2] = static_cast<char>(Introduction::kMostRails + 1);
  expect_refused({more + bytes_of(end_of(1, kEfa)), by_host[1]});
}

// Its numbers are the largest, and its addresses the shortest and the longest.
RankEnd extreme_end() {
  RankEnd end{introduction(1, 0), {true, {0xfd, 0, 1}, 29600}};
  Introduction& transfers = end.transfers;
  transfers.members = INT32_MAX;
  transfers.slot_bytes = UINT64_MAX;
  transfers.write_bytes = 0;
  transfers.payload_bytes = 128;
  transfers.immediate_bits = 64;
  transfers.first_channel = 0xfffffff0;
  transfers.token = 0x8000000000000001;
  for (size_t rail = 0; rail < 2; ++rail) {
    Introduction::Rail& of_rail = transfers.rail[rail];
    of_rail.address_bytes = rail == 0 ? 1 : Transport::kAddressBytes;
    for (size_t i = 0; i < of_rail.address_bytes; ++i) of_rail.address[i] = static_cast<std::byte>(7 * i + rail + 1);
    of_rail.landing = {0x7fff00000000 + rail, UINT64_MAX - rail};
  }
  end.column = ColumnEnd{kEfa};
  for (Introduction& lane : end.column->lanes) {
    lane = transfers;
    lane.token ^= 5;
    lane.rail[1].landing.key -= 7;
  }
  return end;
}

void expect_same(const Introduction& read, const Introduction& told) {
  EXPECT_EQ(read.members, told.members);
  EXPECT_EQ(read.slot_bytes, told.slot_bytes);
  EXPECT_EQ(read.write_bytes, told.write_bytes);
  EXPECT_EQ(read.payload_bytes, told.payload_bytes);
  EXPECT_EQ(read.immediate_bits, told.immediate_bits);
  EXPECT_EQ(read.token, told.token);
  EXPECT_EQ(read.first_channel, told.first_channel);
  ASSERT_EQ(read.rails, told.rails);
  for (size_t rail = 0; rail < 2; ++rail) {
    EXPECT_EQ(read.rail[rail].address_bytes, told.rail[rail].address_bytes);
    EXPECT_EQ(read.rail[rail].address, told.rail[rail].address);
    EXPECT_EQ(read.rail[rail].landing.address, told.rail[rail].landing.address);
    EXPECT_EQ(read.rail[rail].landing.key, told.rail[rail].landing.key);
  }
}

TEST(Network, keeps_every_number_and_address) {
  const RankEnd end = extreme_end();
  const auto network = read_as(0, {bytes_of(end) + bytes_of(end_of(1, kEfa)), both_hosts(kEfa, kEfa)[1]});
  ASSERT_TRUE(network) << network.error().message;
  EXPECT_EQ(network->meeting_places.front(), end.meeting_place);
  expect_same(network->transfers.front(), end.transfers);
  for (size_t lane = 0; lane < kLanes; ++lane) expect_same(network->introductions[lane].front(), end.column->lanes[lane]);
}

}  // namespace
}  // namespace fccl::core
