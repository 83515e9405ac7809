// Tests of the bootstrap's messages as bytes.
#include "bootstrap/messages.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>

#include "channels/handshake.h"

namespace fccl::core {
namespace {

const Member kThird{3, 4711, 0, "host-a", "0001f", "10.0.0.1:4242"};

const Member kFirst{0, 4711, 0, "host-a", "0001f", "10.0.0.1:4242"};
const Member kSecond{1, 4712, 0, "host-a", "00020", ""};

std::vector<Message> samples() {
  return {Hello{kThird, 8, "world=8\nlanes=2", {}, -1, "boot-1 host-a"},
          GivingUp{},
          Progress{2, "ranks 1, 3-7"},
          Refusal{{MessageKind::late_for_init, "late"}},
          Roster{{kFirst, kSecond}},
          Failed{{fcclSystemError, "no memory"}},
          Farewell{},
          Hello{kThird, 8, {}, Error{fcclInvalidUsage, "no such NIC"}, 5},
          Later{},
          SharedRoster{300},
          PlaceInTree{"10.0.0.2:4242", 7, "rank 7 (pid 12 on host-b)"},
          Query{},
          Batch{{{3, Hello{kThird, 8, "world=8", {}, -1, "boot-1 host-a"}},
                 {1, Hello{kSecond, 8, {}, {}, -1, "boot-1 host-a"}, true},
                 {9, GivingUp{}},
                 {-1, Failed{{fcclSystemError, "no memory"}}},
                 {2, Gone{"it closed the connection"}},
                 {5, Present{}}},
                Collects{"10.0.0.1:4242", true}},
          LostWay{"rank 7 (pid 12 on host-b)", "it closed the connection"}};
}

TEST(Messages, come_back_from_their_bytes) {
  const std::optional<Message> hello = decode(encode(samples()[0]));
  ASSERT_TRUE(hello && std::holds_alternative<Hello>(*hello));
  EXPECT_EQ(std::get<Hello>(*hello).member.listener, kThird.listener);
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
  EXPECT_EQ(std::get<Hello>(*hello).host, "boot-1 host-a");
  EXPECT_EQ(std::get<Hello>(*hello).origin, -1);
  const Message failing = *decode(encode(samples()[7]));
  ASSERT_TRUE(std::get<Hello>(failing).failure);
  EXPECT_EQ(std::get<Hello>(failing).failure->code, fcclInvalidUsage);
  EXPECT_EQ(std::get<Hello>(failing).failure->message, "no such NIC");
  EXPECT_EQ(std::get<Hello>(failing).origin, 5);
  EXPECT_TRUE(std::holds_alternative<Later>(*decode(encode(samples()[8]))));
  EXPECT_EQ(std::get<SharedRoster>(*decode(encode(samples()[9]))).bytes, 300U);
  const auto place = std::get<PlaceInTree>(*decode(encode(samples()[10])));
  EXPECT_EQ(place.address, "10.0.0.2:4242");
  EXPECT_EQ(place.rank, 7);
  EXPECT_EQ(place.whom, "rank 7 (pid 12 on host-b)");
  EXPECT_TRUE(std::holds_alternative<Query>(*decode(encode(samples()[11]))));
  const auto lost = std::get<LostWay>(*decode(encode(samples()[13])));
  EXPECT_EQ(lost.whom, "rank 7 (pid 12 on host-b)");
  EXPECT_EQ(lost.why, "it closed the connection");
}

TEST(Messages, a_batch_keeps_its_words_and_names_the_host_of_neighbours_once) {
  const std::string bytes = encode(samples()[12]);
  const auto batch = std::get<Batch>(*decode(bytes));
  ASSERT_EQ(batch.words.size(), 6U);
  ASSERT_TRUE(batch.collects);
  EXPECT_EQ(batch.collects->address, "10.0.0.1:4242");
  EXPECT_TRUE(batch.collects->is_astray);
  std::vector<int> ranks;
  for (const Passed& passed : batch.words) ranks.push_back(passed.rank);
  EXPECT_EQ(ranks, (std::vector{3, 1, 9, -1, 2, 5}));
  const auto& second = std::get<Hello>(batch.words[1].word);
  EXPECT_TRUE(batch.words[1].agrees);
  EXPECT_EQ(second.host, "boot-1 host-a");
  EXPECT_EQ(second.member.host_name, "host-a");
  EXPECT_EQ(second.member.pid, kSecond.pid);
  EXPECT_EQ(bytes.find("boot-1"), bytes.rfind("boot-1"));
  EXPECT_EQ(std::get<Failed>(batch.words[3].word).error.message, "no memory");
  EXPECT_EQ(std::get<Gone>(batch.words[4].word).why, "it closed the connection");
  EXPECT_TRUE(std::holds_alternative<Present>(batch.words[5].word));
}

// Ranks 0 and 1 are on the first of 40 hosts, 2 and 3 on the second, and so on. Hosts 0, 1 and 2 have hosts below them.
TEST(Messages, a_roster_keeps_the_addresses_of_leaders_that_lead_others) {
  std::map<int, Hello> hellos;
  for (int rank = 0; rank < 80; ++rank) {
    hellos[rank].host = "host " + std::to_string(rank / 2);
    hellos[rank].member = {rank, 1, 0, "host", "0001f", "10.0.0.1:" + std::to_string(4000 + rank)};
  }
  const Roster roster = roster_of(hellos);
  for (int rank = 0; rank < 80; ++rank) {
    EXPECT_EQ(roster.members[rank].host, rank / 2);
    EXPECT_EQ(roster.members[rank].address, rank == 0 || rank == 2 || rank == 4 ? hellos[rank].member.address : "") << rank;
  }
}

TEST(Messages, the_largest_batch_fits_what_a_parent_allows) {
  const std::string longest(kTextLimit, 'x');
  const std::string address = "[1111:2222:3333:4444:5555:6666:7777:8888]:65535";
  const Hello hello{{0, 1, 0, longest, longest, address}, 2, {}, Error{fcclTimeout, std::string(100000, 'z')}, -1, longest};
  Batch batch;
  for (size_t i = 0; i < kMostPassedOn; ++i)
    batch.words.push_back({static_cast<int>(i), i % 2 == 0 ? decltype(Passed::word){hello} : Failed{*hello.failure}});
  EXPECT_LE(encode(batch).size(), kBatchLimit);
  EXPECT_TRUE(decode(encode(batch)));
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
  EXPECT_LE(encode(Hello{{0, 1, 0, longest, longest, address}, 2, std::string(kAgreementLimit, 'y'), {}, -1, longest}).size(),
            kMessageLimit);
  for (const Message& longest_error : {Message{Refusal{long_error}}, Message{Failed{long_error}},
                                       Message{Hello{{0, 1, 0, longest, longest, address}, 2, {}, long_error, -1, longest}}}) {
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
    roster.members.push_back({rank, INT32_MAX, rank, host, longest, "[1111:2222:3333:4444:5555:6666:7777:8888]:65535"});
  }
  const std::string bytes = encode(roster);
  EXPECT_LE(bytes.size(), roster_limit(100));
  ASSERT_TRUE(decode(bytes));
  EXPECT_EQ(std::get<Roster>(*decode(bytes)).members, roster.members);
  for (const int impossible : {-5, 0}) EXPECT_LT(roster_limit(impossible), kMessageLimit);
  EXPECT_EQ(roster_limit(1 << 30), roster_limit(kRankLimit));
}

std::map<int, Hello> hellos_of(int ranks, int hosts) {
  std::map<int, Hello> hellos;
  for (int rank = 0; rank < ranks; ++rank) {
    const std::string host = fmt::format("host-{}", rank * 7 % hosts);
    const Member member{rank, 1000 + rank, 0, host, fmt::format("{:05x}", rank)};
    hellos.emplace(rank, Hello{member, ranks, {}, {}, -1, host + " of a boot"});
  }
  return hellos;
}

Roster roster_on_hosts(int ranks, int hosts) { return roster_of(hellos_of(ranks, hosts)); }

TEST(Messages, a_roster_numbers_hosts_as_their_first_ranks_come) {
  std::map<int, Hello> hellos = hellos_of(5, 3);  // on the hosts 0, 1, 2, 0, 1
  hellos.at(1).host = hellos.at(4).host = "another";
  std::vector<int> numbers;
  for (const Member& member : roster_of(hellos).members) numbers.push_back(member.host);
  EXPECT_EQ(numbers, (std::vector{0, 1, 2, 0, 1}));
}

TEST(Messages, a_roster_names_each_host_once_and_no_identity) {
  for (const int hosts : {1, 3, 16}) {
    const Roster roster = roster_on_hosts(64, hosts);
    const std::string bytes = encode(roster);
    EXPECT_EQ(std::get<Roster>(*decode(bytes)).members, roster.members);
    for (int host = 0; host < std::min(hosts, 10); ++host) {
      const std::string name = std::string(1, '\6') + fmt::format("host-{}", host);
      EXPECT_EQ(bytes.find(name), bytes.rfind(name)) << name;
    }
    EXPECT_EQ(bytes.find("boot"), std::string::npos);
  }
  EXPECT_LE(encode(roster_on_hosts(512, 1)).size(), 512 * 9 + 20);
}

TEST(Messages, a_roster_keeps_the_names_of_a_host_that_has_two) {
  Roster roster = roster_on_hosts(6, 2);
  roster.members[4].host_name = "container";
  const auto read = decode(encode(roster));
  ASSERT_TRUE(read);
  EXPECT_EQ(std::get<Roster>(*read).members, roster.members);
}

TEST(Messages, a_roster_tells_a_rank_by_its_place) {
  Roster roster = roster_on_hosts(5, 2);
  const std::string bytes = encode(roster);
  for (Member& member : roster.members) member.rank = 3;
  EXPECT_EQ(encode(roster), bytes);
}

TEST(Messages, a_roster_that_counts_more_or_fewer_ranks_than_it_has_is_refused) {
  const std::string good = encode(Roster{{kFirst, kSecond}});
  ASSERT_TRUE(decode(good));
  for (const char* count : {"\0\0\0\0", "\1\0\0\0", "\3\0\0\0", "\2\1\0\0", "\377\377\377\377"})
    EXPECT_FALSE(decode(std::string(good).replace(1, 4, count, 4)));
  EXPECT_FALSE(decode(encode(Roster{})));
}

TEST(Messages, a_roster_with_hosts_in_another_order_is_refused) {
  const Roster good = roster_on_hosts(3, 3);
  ASSERT_TRUE(decode(encode(good)));
  for (const int other : {-1, 2, 3, INT32_MAX}) {
    Roster roster = good;
    roster.members[1].host = other;
    EXPECT_FALSE(decode(encode(roster))) << other;
  }
}

// The third rank is on the host of the first; its flags, the number of its host, and two bytes of a pid precede its listener.
TEST(Messages, a_roster_that_says_more_of_a_host_than_it_must_or_less_is_refused) {
  const Roster roster = roster_on_hosts(4, 2);
  const std::string good = encode(roster);
  const size_t listener = good.find(std::string("\5") + roster.members[2].listener);
  ASSERT_NE(listener, std::string::npos);
  const size_t flags = listener - 4, number = listener - 3;
  ASSERT_EQ(good[flags], 0);
  ASSERT_EQ(good[number], 0);
  EXPECT_FALSE(decode(std::string(good).replace(number, 1, "\1")));                      // the host of the last rank
  EXPECT_FALSE(decode(std::string(good).replace(number, 1, std::string("\200\0", 2))));  // a number of two bytes
  EXPECT_FALSE(decode(std::string(good).replace(number, 1, "\2")));                      // a host without a name
  for (const char* name : {"\6host-0", "\6host-x"}) {  // the name that the host has, and another one
    std::string named = good;
    named[flags] = '\10';
    named.insert(listener + 6, name);
    EXPECT_EQ(decode(named).has_value(), std::string(name).ends_with('x'));
  }
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
