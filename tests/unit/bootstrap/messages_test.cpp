// Tests of the bootstrap's messages as bytes.
#include "bootstrap/messages.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "channels/handshake.h"

namespace fccl::core {
namespace {

const Member kHostA{3, 4711, "boot-1 host-a", "host-a", "0001f", "10.0.0.1:4242"};

const Member kFirst{0, 4711, "boot-1 host-a", "host-a", "0001f", "10.0.0.1:4242"};
const Member kSecond{1, 4712, "boot-1 host-a", "host-a", "00020", ""};

std::vector<Message> samples() {
  return {Hello{kHostA, 8, "world=8\nlanes=2"},
          GivingUp{},
          Progress{2, "ranks 1, 3-7"},
          Refusal{{MessageKind::late_for_init, "late"}},
          Roster{{kFirst, kSecond}},
          Failed{{fcclSystemError, "no memory"}},
          Farewell{},
          Hello{kHostA, 8, {}, Error{fcclInvalidUsage, "no such NIC"}, 5},
          Later{},
          SharedRoster{300}};
}

TEST(Messages, come_back_from_their_bytes) {
  const std::optional<Message> hello = decode(encode(samples()[0]));
  ASSERT_TRUE(hello && std::holds_alternative<Hello>(*hello));
  EXPECT_EQ(std::get<Hello>(*hello).member.listener, kHostA.listener);
  EXPECT_EQ(std::get<Hello>(*hello).member.address, "10.0.0.1:4242");
  EXPECT_EQ(std::get<Hello>(*hello).nranks, 8);
  EXPECT_EQ(std::get<Hello>(*hello).agreement, "world=8\nlanes=2");
  EXPECT_EQ(std::get<Progress>(*decode(encode(samples()[2]))).missing, "ranks 1, 3-7");
  EXPECT_EQ(std::get<Refusal>(*decode(encode(samples()[3]))).error.code.number(), 8004);
  EXPECT_EQ(std::get<Roster>(*decode(encode(samples()[4]))).members, (std::vector{kFirst, kSecond}));
  Member server = kFirst;
  server.serves = true;
  EXPECT_EQ(std::get<Roster>(*decode(encode(Roster{{server}}))).members, std::vector{server});
  EXPECT_EQ(std::get<Failed>(*decode(encode(samples()[5]))).error.message, "no memory");
  EXPECT_EQ(std::get<Failed>(*decode(encode(samples()[5]))).error.code, fcclSystemError);
  EXPECT_TRUE(std::holds_alternative<Farewell>(*decode(encode(samples()[6]))));
  EXPECT_FALSE(std::get<Hello>(*hello).failure);
  EXPECT_EQ(std::get<Hello>(*hello).origin, -1);
  const Message failing = *decode(encode(samples()[7]));
  ASSERT_TRUE(std::get<Hello>(failing).failure);
  EXPECT_EQ(std::get<Hello>(failing).failure->code, fcclInvalidUsage);
  EXPECT_EQ(std::get<Hello>(failing).failure->message, "no such NIC");
  EXPECT_EQ(std::get<Hello>(failing).origin, 5);
  EXPECT_TRUE(std::holds_alternative<Later>(*decode(encode(samples()[8]))));
  EXPECT_EQ(std::get<SharedRoster>(*decode(encode(samples()[9]))).bytes, 300U);
}

TEST(Messages, bytes_that_are_cut_or_too_many_are_refused) {
  for (const Message& message : samples()) {
    const std::string bytes = encode(message);
    for (size_t length = 0; length < bytes.size(); ++length)
      EXPECT_FALSE(decode(bytes.substr(0, length))) << message.index() << " " << length;
    EXPECT_FALSE(decode(bytes + '\0'));
  }
}

TEST(Messages, every_flipped_bit_gives_a_sensible_message_or_none) {
  for (const Message& message : samples()) {
    const std::string bytes = encode(message);
    for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
      std::string damaged = bytes;
      damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
      const std::optional<Message> decoded = decode(damaged);
      EXPECT_TRUE(!decoded || encode(*decoded).size() == bytes.size());
    }
  }
}

TEST(Messages, the_largest_hello_and_refusal_fit_a_message) {
  const Error long_error{fcclTimeout, std::string(100000, 'z')};
  const std::string longest(kTextLimit, 'x');
  const std::string address = "[1111:2222:3333:4444:5555:6666:7777:8888]:65535";
  EXPECT_LE(encode(Hello{{0, 1, longest, longest, longest, address}, 2, std::string(kAgreementLimit, 'y')}).size(),
            kMessageLimit);
  for (const Message& longest_error : {Message{Refusal{long_error}}, Message{Failed{long_error}},
                                       Message{Hello{{0, 1, longest, longest, longest, address}, 2, {}, long_error}}}) {
    const std::string bytes = encode(longest_error);
    EXPECT_LE(bytes.size(), kMessageLimit);
    EXPECT_TRUE(decode(bytes));
  }
}

TEST(Messages, the_largest_roster_fits_what_its_ranks_allow) {
  const std::string longest(kTextLimit, 'x');
  Roster roster;
  for (int rank = 0; rank < 100; ++rank) {
    const std::string host = fmt::format("{:0255}", rank);
    roster.members.push_back({rank, 1, host, host, longest, "[1111:2222:3333:4444:5555:6666:7777:8888]:65535"});
  }
  const std::string bytes = encode(roster);
  EXPECT_LE(bytes.size(), roster_limit(100));
  ASSERT_TRUE(decode(bytes));
  EXPECT_EQ(std::get<Roster>(*decode(bytes)).members, roster.members);
  for (const int impossible : {-5, 0}) EXPECT_LT(roster_limit(impossible), kMessageLimit);
  EXPECT_EQ(roster_limit(1 << 30), roster_limit(kRankLimit));
}

Roster roster_on_hosts(int ranks, int hosts) {
  Roster roster;
  for (int rank = 0; rank < ranks; ++rank) {
    const std::string host = fmt::format("host-{}", rank * 7 % hosts);
    roster.members.push_back({rank, 1000 + rank, host + " of a boot", host, fmt::format("{:05x}", rank)});
  }
  return roster;
}

TEST(Messages, a_roster_names_each_host_once) {
  for (const int hosts : {1, 3, 16}) {
    const Roster roster = roster_on_hosts(64, hosts);
    const std::string bytes = encode(roster);
    EXPECT_EQ(std::get<Roster>(*decode(bytes)).members, roster.members);
    for (int host = 0; host < hosts; ++host) {
      const std::string name = fmt::format("host-{} of", host);
      EXPECT_EQ(bytes.find(name), bytes.rfind(name)) << name;
    }
  }
  EXPECT_LE(encode(roster_on_hosts(512, 1)).size(), 512 * 12);
}

TEST(Messages, a_roster_tells_a_rank_by_its_place) {
  Roster roster = roster_on_hosts(5, 2);
  const std::string bytes = encode(roster);
  for (Member& member : roster.members) member.rank = 3;
  EXPECT_EQ(encode(roster), bytes);
}

TEST(Messages, a_roster_that_counts_more_or_fewer_ranks_or_hosts_than_it_has_is_refused) {
  const std::string good = encode(Roster{{kFirst, kSecond}});
  ASSERT_TRUE(decode(good));
  for (const char* count : {"\0\0\0\0", "\1\0\0\0", "\3\0\0\0", "\2\1\0\0", "\377\377\377\377"})
    EXPECT_FALSE(decode(std::string(good).replace(1, 4, count, 4)));
  for (const char* count : {"\0\0\0\0", "\2\0\0\0", "\377\377\377\377"})
    EXPECT_FALSE(decode(std::string(good).replace(5, 4, count, 4)));
  EXPECT_FALSE(decode(encode(Roster{})));
}

TEST(Messages, a_roster_with_a_host_twice_or_in_another_order_is_refused) {
  const Roster roster = roster_on_hosts(3, 3);
  std::string bytes = encode(roster);
  ASSERT_TRUE(decode(bytes));
  // Rank 1 is the first one of host 1, whose number comes after its flags.
  const size_t number = bytes.find(std::string("\0\1\0\0\0", 5)) + 1;
  for (const char other : {'\0', '\2', '\3'})
    EXPECT_FALSE(decode(std::string(bytes).replace(number, 1, 1, other))) << int{other};
}

TEST(Messages, a_member_whose_address_is_none_is_refused) {
  Member member = kFirst;
  member.address = "";
  EXPECT_TRUE(decode(encode(Roster{{member}})));
  for (const char* address : {"10.0.0.1", "host-a:4242", "10.0.0.1:", "10.0.0.1:65536", " 10.0.0.1:1"}) {
    member.address = address;
    EXPECT_FALSE(decode(encode(Roster{{member}}))) << address;
  }
}

TEST(Messages, ranks_are_listed_in_ranges_and_long_lists_are_cut) {
  EXPECT_EQ(list_ranks({4}), "rank 4");
  EXPECT_EQ(list_ranks({0, 1, 2, 5, 7, 8}), "ranks 0-2, 5, 7-8");
  std::vector<int> even;
  for (int rank = 0; rank < 100; rank += 2) even.push_back(rank);
  EXPECT_EQ(list_ranks(even), "ranks 0, 2, 4, 6, 8, 10, 12, 14 and 42 more");
}

}  // namespace
}  // namespace fccl::core
