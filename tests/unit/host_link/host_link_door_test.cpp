// Tests of whom a link between hosts believes: strangers at the door of the top, and leaders who say what they may not.
#include <sys/socket.h>
#include <sys/wait.h>

#include <csignal>
#include <future>
#include <list>

#include "channels/channel.h"
#include "linking.h"
#include "unit/bootstrap/joining.h"

namespace fccl::core {
namespace {

using Lines = std::vector<std::string>;

// Enough for a few of the largest blobs.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr auto kBlobTime = 8s;
#else
constexpr auto kBlobTime = 1s;
#endif

Descriptor stranger(const Address& top, std::string_view words) {
  Connection connection = connect_tcp(top, Deadline::after(1s));
  if (connection.socket && !words.empty()) write_some(connection.socket.get(), words);
  return std::move(connection.socket);
}

std::string preamble(int rank) { return std::string(Conversation(Role::connects, Key{}, {rank}).outgoing()); }

// One who holds the key and says that it is that rank; open.
Channel key_holder(const Hosts& hosts, int rank) {
  Channel channel(std::move(connect_tcp(hosts.top(), Deadline::after(1s)).socket),
                  Conversation(Role::connects, hosts.id.key, {rank}));
  EXPECT_TRUE(channel.await_open(Deadline::after(5s)));
  return channel;
}

TEST(HostLinkDoor, strangers_delay_nobody) {
  const Census census;
  Hosts hosts(3);
  std::list<Descriptor> strangers;
  for (const std::string& words : {std::string(), preamble(2).substr(0, 7), preamble(2), preamble(2) + std::string(65536, '\0'),
                                   std::string("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), std::string(65536, '\xa5')})
    strangers.push_back(stranger(hosts.top(), words));
  const auto begin = Clock::now();
  on_all(3, [&](int host) {
    const auto met = hosts.meet(host);
    ASSERT_TRUE(met) << met.error().message;
    EXPECT_TRUE((*met)->exchange("", Deadline::after(20s)));
  });
  EXPECT_LT(Clock::now() - begin, 2s);
}

TEST(HostLinkDoor, ranks_that_are_not_expected_are_turned_away) {
  Hosts hosts(2);
  auto top = std::async(std::launch::async, [&] { return hosts.meet(0); });
  // The ranks are of the top's host, not a leader, or out of range.
  std::list<Channel> uninvited;
  for (const int rank : {0, 1, 3, 4, -1, 1 << 30, INT32_MIN}) uninvited.push_back(key_holder(hosts, rank));
  auto leaf = hosts.meet(1);
  ASSERT_TRUE(leaf) << leaf.error().message;
  EXPECT_TRUE(top.get());
}

TEST(HostLinkDoor, another_key_is_an_error_at_once) {
  Hosts hosts(2);
  auto top = std::async(std::launch::async, [&] { return hosts.meet(0, 1s); });
  HostLinkRequest request = hosts.request(1);
  request.id.key[0] ^= 1;
  const auto met = HostLink::meet(request, {}, Deadline::after(10s));
  ASSERT_FALSE(met);
  EXPECT_EQ(met.error().code, fcclInvalidUsage);
  EXPECT_NE(met.error().message.find("does not hold the key"), std::string::npos) << met.error().message;
  EXPECT_EQ(top.get().error().code, fcclTimeout);
}

TEST(HostLinkDoor, is_closed_once_all_are_in_also_where_a_forked_child_has_a_copy) {
  Hosts hosts(2);
  const pid_t child = ::fork();
  if (child == 0)
    while (true) ::pause();
  std::vector<std::unique_ptr<HostLink>> links(2);
  on_all(2, [&](int host) { links[host] = *hosts.meet(host); });
  EXPECT_EQ(connect_tcp(hosts.top(), Deadline::after(1s)).error, ECONNREFUSED);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

// A top and a first leader that have started, and a second one that says what it likes.
struct Rogue {
  Rogue() : hosts(3), heard(2), links(2), channel(reach()) {}

  Channel reach() {
    auto top = std::async(std::launch::async, [&] { return hosts.meet(0); });
    links[1] = *hosts.meet(1);
    Channel made = key_holder(hosts, leader_of(2));
    links[0] = std::move(*top.get());
    for (const int host : {0, 1}) EXPECT_TRUE(links[host]->start(make_wake(), {}, heard[host].events()));
    return made;
  }
  void say(const std::string& bytes) {
    channel.say(bytes);
    EXPECT_TRUE(channel.await_sent(Deadline::after(5s)));
  }

  Hosts hosts;
  std::vector<Heard> heard;
  std::vector<std::unique_ptr<HostLink>> links;
  Channel channel;
};

TEST(HostLinkDoor, a_leader_that_says_what_it_may_not_is_cut_off_and_nothing_of_it_is_believed) {
  for (const std::string& words :
       {std::string("\xff nonsense"), std::string(), encode_link(Departure{3, PeerStatus::died}),
        encode_link(Departure{6, PeerStatus::died}), encode_link(Departure{INT32_MAX, PeerStatus::died}),
        encode_link(Cut{1, LinkEnd::broken}), encode_link(Cut{2, LinkEnd::broken}), encode_link(Cut{7, LinkEnd::broken}),
        encode_link(Blobs{{"x", "y", "z"}}), encode_link(Failure{{fcclNumResults, "?"}})}) {
    Rogue rogue;
    rogue.say(words);
    for (const int host : {0, 1}) EXPECT_EQ(rogue.heard[host].first(1), Lines{"cut: 4 broken"}) << host;
  }
}

TEST(HostLinkDoor, what_a_leader_repeats_is_told_once) {
  Rogue rogue;
  for (int i = 0; i < 1000; ++i) {
    rogue.say(encode_link(Departure{5, i % 2 == 0 ? PeerStatus::left : PeerStatus::died}));
    rogue.say(encode_link(Failure{{fcclRemoteError, "failure " + std::to_string(i)}}));
  }
  rogue.say(encode_link(Departure{4, PeerStatus::died}));
  for (const int host : {0, 1})
    EXPECT_EQ(rogue.heard[host].first(3), (Lines{"gone: 5 left", "failed: failure 0", "gone: 4 died"})) << host;
}

TEST(HostLinkDoor, a_leader_that_gives_for_hosts_that_are_not_below_it_or_is_far_ahead_ends_the_exchange_by_name) {
  const std::vector<std::vector<LinkMessage>> misfits{{Blobs{{"x", "y", "z"}}}, {Blobs{{""}}, Blobs{{""}}, Blobs{{""}}}};
  for (const std::vector<LinkMessage>& misfit : misfits) {
    Hosts hosts(3);
    auto top = std::async(std::launch::async, [&]() -> Result<std::vector<std::string>> {
      auto link = hosts.meet(0);
      if (!link) return fail(link.error());
      return (*link)->exchange("top", Deadline::after(20s));
    });
    auto other = key_holder(hosts, leader_of(2));
    Channel rogue = key_holder(hosts, leader_of(1));
    for (const LinkMessage& message : misfit) rogue.say(encode_link(message));
    EXPECT_TRUE(rogue.await_sent(Deadline::after(5s)));
    const auto all = top.get();
    ASSERT_FALSE(all);
    EXPECT_EQ(all.error().code, fcclRemoteError);
    EXPECT_NE(all.error().message.find("rank 2 (pid"), std::string::npos) << all.error().message;
    EXPECT_NE(all.error().message.find("makes no sense"), std::string::npos) << all.error().message;
  }
}

TEST(HostLinkDoor, a_top_that_tells_of_more_or_fewer_hosts_than_there_are_ends_the_exchange_by_name) {
  for (const LinkMessage& misfit : {LinkMessage{Blobs{{"x"}}}, LinkMessage{Blobs{{"x", "y", "z"}}}, LinkMessage{Blobs{}}}) {
    Hosts hosts(2);
    auto leader = std::async(std::launch::async, [&]() -> Result<std::vector<std::string>> {
      auto link = hosts.meet(1);
      if (!link) return fail(link.error());
      return (*link)->exchange("leader", Deadline::after(20s));
    });
    pollfd ready{hosts.listeners[0].get(), POLLIN, 0};
    poll_until({&ready, 1}, Deadline::after(5s));
    Channel top(std::move(accept_one(hosts.listeners[0].get()).socket),
                Conversation(Role::listens, hosts.id.key, {leader_of(0)}));
    ASSERT_TRUE(top.await_open(Deadline::after(5s)));
    top.say(encode_link(misfit));
    EXPECT_TRUE(top.await_sent(Deadline::after(5s)));
    const auto all = leader.get();
    ASSERT_FALSE(all);
    EXPECT_EQ(all.error().code, fcclRemoteError);
    EXPECT_NE(all.error().message.find("rank 0 (pid"), std::string::npos) << all.error().message;
    EXPECT_NE(all.error().message.find("makes no sense"), std::string::npos) << all.error().message;
  }
}

TEST(HostLinkDoor, a_leader_that_takes_no_bytes_is_named_at_the_deadline_and_keeps_nobody_from_leaving) {
  Hosts hosts(3);
  Channel silent(std::move(connect_tcp(hosts.top(), Deadline::after(1s)).socket),
                 Conversation(Role::connects, hosts.id.key, {leader_of(2)}));
  // So that the system takes little for it.
  const int few = 4096;
  ASSERT_EQ(::setsockopt(silent.socket(), SOL_SOCKET, SO_RCVBUF, &few, sizeof(few)), 0);
  on_all(3, [&](int host) {
    if (host == 2) {
      ASSERT_TRUE(silent.await_open(Deadline::after(20s)));
      silent.say(encode_link(Blobs{{"x"}}));
      ASSERT_TRUE(silent.await_sent(Deadline::after(20s)));
      return;
    }
    auto link = hosts.meet(host);
    ASSERT_TRUE(link) << link.error().message;
    const auto all = (*link)->exchange(std::string(kBlobLimit, 'x'), Deadline::after(host == 0 ? kBlobTime : 60s));
    // The other one has everything.
    EXPECT_EQ(all.has_value(), host == 1);
    if (all) return;
    EXPECT_EQ(all.error().code, fcclTimeout);
    EXPECT_NE(all.error().message.find("missing: rank 4 (pid"), std::string::npos) << all.error().message;
    const auto begin = Clock::now();
    link->reset();
    EXPECT_LT(Clock::now() - begin, 500ms);
  });
}

}  // namespace
}  // namespace fccl::core
