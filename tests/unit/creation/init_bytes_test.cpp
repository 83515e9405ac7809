// Counts what the ranks of several hosts say in init, from the messages themselves.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "bootstrap/messages.h"
#include "channels/handshake.h"
#include "creation/create_options.h"
#include "creation/network.h"
#include "host_link/link_messages.h"
#include "topology/costs.h"

namespace fccl::core {
namespace {

constexpr size_t kHosts = 16, kRanksOfHost = 4, kRanks = kHosts * kRanksOfHost;
// Both ends of a connection say a preamble and a proof; a message has a length and a seal.
constexpr size_t kConnection = 2 * (kPreambleBytes + kProofBytes);
constexpr size_t kSeal = 4 + sizeof(Digest);

size_t sealed(const std::string& bytes) { return kSeal + bytes.size(); }

// As on ./dev cluster 16x4.
std::map<int, Hello> hellos() {
  std::map<int, Hello> all;
  for (int rank = 0; rank < static_cast<int>(kRanks); ++rank) {
    const int host = rank / static_cast<int>(kRanksOfHost);
    const std::string name = fmt::format("node{}", host);
    Member member{rank, 1'200'000 + rank, 0, name, fmt::format("{:05x}", 0xabc00 + rank)};
    if (rank == 0) member.address = "10.77.0.1:45678";
    Hello hello{member, static_cast<int>(kRanks), CreateOptions{}.agreement()};
    hello.host = fmt::format("01234567-89ab-cdef-0123-456789abcdef {} ipc:[4026531839] pid:[40265318{:02}] net:[40265319{:02}]",
                             name, host, host);
    all.emplace(rank, std::move(hello));
  }
  return all;
}

// Numbers are as large as they may come; libfabric's tcp has addresses of 48 bytes, and no limit of a write.
Introduction introduction_of(uint64_t rank, int rails) {
  Introduction introduction{.members = static_cast<int32_t>(kRanks),
                            .window = 8,
                            .slot_bytes = 279'552,
                            .write_bytes = UINT64_MAX,
                            .payload_bytes = 4'416,
                            .immediate_bits = 32,
                            .rails = rails,
                            .first_channel = 0xfffffff0,
                            .token = UINT64_MAX - rank,
                            .rail = {}};
  for (int rail = 0; rail < rails; ++rail) introduction.rail[static_cast<size_t>(rail)].address_bytes = 48;
  return introduction;
}

std::string end_of_host(uint64_t host, int rails) {
  std::string bytes;
  for (uint64_t rank = host * kRanksOfHost; rank < (host + 1) * kRanksOfHost; ++rank) {
    const Introduction lane = introduction_of(rank, rails);
    append(bytes, RankEnd{lane, Address{false, {10, 77, 0, 1}, 40'000},
                          ColumnEnd{{"tcp", rails, *default_costs("tcp", 10'000)}, {lane, lane}}});
  }
  return bytes;
}

// Hellos, rosters by TCP and by memory, farewells.
size_t said_to_and_by_the_root() {
  const std::map<int, Hello> all = hellos();
  size_t bytes = kRanks * (kConnection + sealed(encode(Farewell{})));
  for (const auto& [rank, hello] : all) bytes += sealed(encode(hello));
  bytes += (kRanks - kRanksOfHost) * sealed(encode(roster_of(all)));
  return bytes + kRanksOfHost * sealed(encode(SharedRoster{4096}));
}

// A descriptor for each rank but the leader, with a message that says nothing.
size_t said_within_hosts() { return kHosts * (kRanksOfHost - 1) * (kConnection + sealed("segment")); }

// The leaders exchange what their ranks tell, and nothing once their lanes are connected.
size_t said_by_leaders(int rails) {
  size_t bytes = (kHosts - 1) * kConnection;
  Blobs told, nothing{std::vector<std::string>(kHosts)};
  for (uint64_t host = 0; host < kHosts; ++host) told.of_hosts.push_back(end_of_host(host, rails));
  for (size_t host = 1; host < kHosts; ++host)
    bytes += sealed(encode_link(Blob{told.of_hosts[host]})) + sealed(encode_link(Blob{}));
  return bytes + (kHosts - 1) * (sealed(encode_link(told)) + sealed(encode_link(nothing)));
}

TEST(InitBytes, of_16_hosts_of_4_ranks_are_at_most_400_KB) {
  const size_t by_root = said_to_and_by_the_root(), within = said_within_hosts(), by_leaders = said_by_leaders(1);
  RecordProperty("bytes", static_cast<int>(by_root + within + by_leaders));
  EXPECT_LE(by_root + within + by_leaders, 400'000u) << by_root << " + " << within << " + " << by_leaders;
  // Reports of who has joined come on top, on a busy machine.
  EXPECT_LE(by_root + within + by_leaders, 380'000u);
}

}  // namespace
}  // namespace fccl::core
