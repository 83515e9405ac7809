// Tests of joining: rosters, and errors that reach every rank by name.
#include "bootstrap/bootstrap.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <future>
#include <memory>

#include "bootstrap/messages.h"
#include "channels/channel.h"
#include "channels/traffic.h"
#include "discovery/host_identity.h"
#include "sockets/socket.h"
#include "unit/bootstrap/joining.h"

namespace fccl::core {
namespace {

class RanksJoin : public testing::TestWithParam<int> {};

TEST_P(RanksJoin, and_all_have_the_same_roster) {
  const Census census;
  const int nranks = GetParam();
  const std::vector<Result<Joined>> results = join_all(requests_of(*open_bootstrap(on_interface("lo")), nranks));
  for (const Result<Joined>& result : results) ASSERT_TRUE(result) << result.error().message;
  for (int rank = 0; rank < nranks; ++rank) {
    EXPECT_EQ(results[rank]->members, results[0]->members);
    const Member& member = results[0]->members[rank];
    EXPECT_EQ(member.rank, rank);
    EXPECT_EQ(member.pid, ::getpid());
    const int per_host = ranks_per_host();
    EXPECT_EQ(member.host, per_host == 0 ? 0 : rank / per_host);
    EXPECT_EQ(member.listener, *local_name(results[rank]->listener.get()));
  }
}

// The ranks are threads of this process, which also serves the id: it counts what all of them say.
TEST_P(RanksJoin, and_each_costs_a_hello_a_roster_and_a_farewell) {
  const int nranks = GetParam();
  const Traffic before = traffic_of_process();
  for (const Result<Joined>& result : join_all(requests_of(*open_bootstrap(on_interface("lo")), nranks)))
    ASSERT_TRUE(result) << result.error().message;
  const Traffic took = traffic_of_process() - before;
  EXPECT_GE(took.messages, 3 * nranks);
  // On a busy machine reports of who has joined come on top.
  EXPECT_LE(took.messages, 6 * nranks);
}

// Plays the root of one rank on its host: it says `words` to the rank that joins, with a descriptor if there is one, and the
// rank's error is returned.
Error joined_by_root_that_says(const std::string& words, int nranks, int descriptor = -1) {
  UniqueId id = *open_bootstrap(on_interface("lo"));
  // Nobody else is there.
  id.root.port = 1;
  const Descriptor listener = std::move(listen_local_at(door_name(id, host_identity(host_of_rank(0))), 1).socket);
  std::future<Result<Joined>> joining =
      std::async(std::launch::async, [&] { return join(request_of(id, 0, nranks), Deadline::after(5s)); });
  pollfd ready{listener.get(), POLLIN, 0};
  poll_until({&ready, 1}, Deadline::after(2s));
  Channel root(std::move(accept_one(listener.get()).socket), Conversation(Role::listens, id.key, {kRootRank}));
  EXPECT_TRUE(root.await_open(Deadline::after(2s)));
  EXPECT_TRUE(root.await_message(Deadline::after(2s)));
  if (descriptor >= 0)
    root.say(words, std::array{descriptor});
  else
    root.say(std::make_shared<const std::string>(words));
  (void)root.await_sent(Deadline::after(2s));
  const Result<Joined> joined = joining.get();
  return joined ? Error{fcclSuccess, "it joined"} : joined.error();
}

Roster roster_of(int nranks) {
  Roster roster;
  for (int rank = 0; rank < nranks; ++rank) roster.members.push_back({rank, 1, 0, "host", "name"});
  return roster;
}

TEST(Bootstrap, a_roster_that_is_not_the_communicators_is_an_error) {
  EXPECT_EQ(joined_by_root_that_says(encode(roster_of(2)), 2).message, "it joined");
  for (const int other : {1, 3}) {
    const Error error = joined_by_root_that_says(encode(roster_of(other)), 2);
    EXPECT_EQ(error.code, fcclInternalError);
    EXPECT_NE(error.message.find("a roster of " + std::to_string(other) + " ranks, but the communicator has 2"),
              std::string::npos)
        << error.message;
  }
}

TEST(Bootstrap, a_roster_that_is_damaged_or_too_long_is_an_error) {
  const std::string bytes = encode(roster_of(2));
  for (const std::string& words : {bytes.substr(0, bytes.size() - 1), bytes + "x"}) {
    const Error error = joined_by_root_that_says(words, 2);
    EXPECT_EQ(error.code, fcclInternalError);
    EXPECT_NE(error.message.find("makes no sense"), std::string::npos) << error.message;
  }
  const Error error = joined_by_root_that_says(std::string(std::max(kMessageLimit, roster_limit(2)) + 1, 'x'), 2);
  EXPECT_NE(error.message.find("more than the 4096 that one may have"), std::string::npos) << error.message;
}

Descriptor memory_with(const std::string& bytes, int seals) {
  Descriptor memory(::memfd_create("roster of a test", MFD_ALLOW_SEALING));
  EXPECT_EQ(::write(memory.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  EXPECT_EQ(::fcntl(memory.get(), F_ADD_SEALS, seals), 0);
  return memory;
}

TEST(Bootstrap, a_roster_in_memory_that_may_change_or_is_not_as_long_as_told_is_an_error) {
  const std::string bytes = encode(roster_of(2));
  const auto size = static_cast<uint32_t>(bytes.size());
  constexpr int kSeals = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  const Descriptor good = memory_with(bytes, kSeals), loose = memory_with(bytes, F_SEAL_SHRINK),
                   other = memory_with(encode(roster_of(3)), kSeals), nonsense = memory_with("nonsense", kSeals);
  const auto error = [](uint32_t told, const Descriptor& memory) {
    return joined_by_root_that_says(encode(SharedRoster{told}), 2, memory.get()).message;
  };
  EXPECT_EQ(error(size, good), "it joined");
  EXPECT_NE(error(size, loose).find("not sealed"), std::string::npos);
  EXPECT_NE(error(size - 1, good).find("not as long"), std::string::npos);
  EXPECT_NE(error(1 << 20, good).find("a roster of 1048576 bytes"), std::string::npos);
  EXPECT_NE(error(static_cast<uint32_t>(encode(roster_of(3)).size()), other).find("a roster of 3 ranks"), std::string::npos);
  EXPECT_NE(error(8, nonsense).find("a roster that makes no sense"), std::string::npos);
  EXPECT_NE(joined_by_root_that_says(encode(SharedRoster{size}), 2).message.find("cannot take the descriptor"),
            std::string::npos);
}

TEST(Bootstrap, rank_zero_listens_where_the_roster_says_and_it_names_no_other_listener) {
  const Census census;
  std::vector<JoinRequest> requests = requests_of(*open_bootstrap(on_interface("lo")), 3);
  requests[0].settings.interface_name = "lo";
  const std::vector<Result<Joined>> results = join_all(requests);
  for (const Result<Joined>& result : results) {
    ASSERT_TRUE(result) << result.error().message;
    const std::optional<Address> address = address_from(result->members[0].address);
    ASSERT_TRUE(address) << result->members[0].address;
    EXPECT_TRUE(result->members[0].address.starts_with("127.0.0.1:")) << result->members[0].address;
    EXPECT_EQ(*address, *address_of(results[0]->tcp_listener.get()));
    EXPECT_TRUE(connect_tcp(*address, Deadline::after(1s)).socket);
    for (const int other : {1, 2}) EXPECT_EQ(result->members[other].address, "");
  }
  // Of many ranks each listens, for those that turn out to be leaders of leaders.
  EXPECT_EQ(static_cast<bool>(results[1]->tcp_listener), requests[1].most_direct < 3);
}

TEST(Bootstrap, an_interface_that_rank_zero_does_not_have_is_named) {
  JoinRequest request = request_of(*open_bootstrap(on_interface("lo")), 0, 2);
  request.settings.interface_name = "no_such_interface";
  std::vector<Result<Joined>> results;
  results.push_back(join(request, Deadline::after(10s)));
  expect_failures(results, fcclInvalidUsage, {"no_such_interface", "FCCL_SOCKET_IFNAME"});
}

INSTANTIATE_TEST_SUITE_P(Bootstrap, RanksJoin, testing::Values(1, 2, 5, 64));

TEST(Bootstrap, on_the_interface_that_is_chosen_by_itself_ranks_find_each_other) {
  for (const Result<Joined>& result : join_all(requests_of(*open_bootstrap(Settings{}), 3)))
    EXPECT_TRUE(result) << result.error().message;
}

TEST(Bootstrap, many_communicators_are_made_at_once) {
  const Census census;
  std::vector<JoinRequest> requests;
  for (int i = 0; i < 20; ++i)
    for (JoinRequest& request : requests_of(*open_bootstrap(on_interface("lo")), 2)) requests.push_back(std::move(request));
  for (const Result<Joined>& result : join_all(requests)) EXPECT_TRUE(result) << result.error().message;
}

TEST(Bootstrap, a_host_override_reaches_the_roster) {
  const UniqueId id = *open_bootstrap(on_interface("lo"));
  std::vector<JoinRequest> requests = requests_of(id, 2);
  requests[1].host_override = "elsewhere";
  const std::vector<Result<Joined>> results = join_all(requests);
  ASSERT_TRUE(results[0]);
  EXPECT_NE(results[0]->members[0].host, results[0]->members[1].host);
}

TEST(Bootstrap, a_rank_that_is_there_twice_fails_all) {
  const Census census;
  const UniqueId id = *open_bootstrap(on_interface("lo"));
  const std::string me = std::to_string(::getpid());
  expect_failures(join_all({request_of(id, 0, 3), request_of(id, 1, 3), request_of(id, 1, 3)}), fcclInvalidUsage,
                  {"rank 1 joined twice", "pid " + me});
  expect_failures(join_all({request_of(id, 2, 3)}), fcclInvalidUsage, {"rank 1 joined twice"});
}

TEST(Bootstrap, different_numbers_of_ranks_fail_all_also_one_that_comes_later) {
  const Census census;
  const UniqueId id = *open_bootstrap(on_interface("lo"));
  const std::vector<std::string> pieces{"rank 0 (pid", "rank 1 (pid", "of 2", "of 3"};
  expect_failures(join_all({request_of(id, 0, 2), request_of(id, 1, 3)}), fcclInvalidUsage, pieces);
  expect_failures(join_all({request_of(id, 2, 3)}), fcclInvalidUsage, pieces);
}

TEST(Bootstrap, a_rank_out_of_range_fails_all) {
  for (const int rank : {-1, 2, 1000000}) {
    const UniqueId id = *open_bootstrap(on_interface("lo"));
    expect_failures(join_all({request_of(id, 0, 2), request_of(id, rank, 2)}), fcclInvalidUsage,
                    {"rank " + std::to_string(rank) + " (pid", "out of range", "ranks 0 to 1"});
  }
}

TEST(Bootstrap, a_number_of_ranks_that_cannot_be_fails_the_rank) {
  for (const int nranks : {0, -5, 1 << 30})
    expect_failures(join_all({request_of(*open_bootstrap(on_interface("lo")), 0, nranks)}), fcclInvalidUsage,
                    {std::to_string(nranks) + " ranks"});
}

TEST(Bootstrap, settings_that_differ_are_named_with_both_ranks_and_the_first_line) {
  const Census census;
  const UniqueId id = *open_bootstrap(on_interface("lo"));
  expect_failures(
      join_all({request_of(id, 0, 2, "lanes=2\nslots=4\nlast=0"), request_of(id, 1, 2, "lanes=2\nslots=8\nlast=1")}),
      fcclInvalidUsage, {"rank 0 (pid", "rank 1 (pid", "\"slots=4\"", "\"slots=8\""});
}

TEST(Bootstrap, another_version_is_named_on_every_rank) {
  const UniqueId id = *open_bootstrap(on_interface("lo"));
  std::future<Result<Joined>> right =
      std::async(std::launch::async, [&] { return join(request_of(id, 0, 2), Deadline::after(5s)); });
  Channel other(std::move(connect_tcp(id.root, Deadline::after(1s)).socket),
                Conversation(Role::connects, id.key, {1, {kOwnVersion.protocol + 1, 200}}));
  ASSERT_TRUE(other.await_open(Deadline::after(1s)));
  EXPECT_EQ(other.peer().version, kOwnVersion);
  std::vector<Result<Joined>> results;
  results.push_back(right.get());
  expect_failures(results, fcclInvalidUsage,
                  {fmt::format("rank 1 speaks protocol {}, library 0.2.0", kOwnVersion.protocol + 1),
                   fmt::format("the root speaks protocol {}", kOwnVersion.protocol)});
}

TEST(Bootstrap, a_rank_that_is_killed_while_joining_is_named_on_the_others_at_once) {
  const UniqueId id = *open_bootstrap(on_interface("lo"));
  const pid_t child = ::fork();
  if (child == 0) {
    (void)join(request_of(id, 2, 3), Deadline::after(10s));
    ::_exit(0);
  }
  std::future<Result<Joined>> waiting =
      std::async(std::launch::async, [&] { return join(request_of(id, 0, 3), Deadline::after(10s)); });
  std::this_thread::sleep_for(200ms);
  const auto begin = Clock::now();
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  std::vector<Result<Joined>> results;
  results.push_back(waiting.get());
  EXPECT_LT(Clock::now() - begin, 1s);
  expect_failures(results, fcclRemoteError,
                  {"rank 2 (pid " + std::to_string(child) + " on ", "left while joining", "2 of 3", "missing: rank 1"});
  expect_failures(join_all({request_of(id, 1, 3)}), fcclRemoteError, {"rank 2 (pid " + std::to_string(child)});
}

TEST(Bootstrap, the_roots_death_is_an_error_at_once) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the thread sanitizer allows no threads in a child that was forked beside threads";
#endif
  ServedElsewhere served;
  ASSERT_NO_FATAL_FAILURE(served.begin());
  const UniqueId id = *from_c(served.id);
  std::future<Result<Joined>> waiting =
      std::async(std::launch::async, [&] { return join(request_of(id, 0, 2), Deadline::after(10s)); });
  std::this_thread::sleep_for(100ms);
  ::kill(served.child, SIGKILL);
  ::waitpid(served.child, nullptr, 0);
  const auto begin = Clock::now();
  std::vector<Result<Joined>> results;
  results.push_back(waiting.get());
  results.push_back(join(request_of(id, 1, 2), Deadline::after(10s)));
  EXPECT_LT(Clock::now() - begin, 1s);
  expect_failures(results, fcclRemoteError, {to_text(id.root), "fcclGetUniqueId"});
}

TEST(Bootstrap, the_deadline_holds_and_the_missing_ranks_are_named) {
  const UniqueId id = *open_bootstrap(on_interface("lo"));
  const auto begin = Clock::now();
  const std::vector<Result<Joined>> results = join_all({request_of(id, 1, 5), request_of(id, 3, 5)}, 300ms);
  EXPECT_LT(Clock::now() - begin, 600ms);
  expect_failures(results, fcclTimeout, {"2 of 5", "missing: ranks 0, 2, 4", "FCCL_INIT_TIMEOUT"});
}

TEST(Bootstrap, a_rank_that_gives_up_between_two_reports_names_only_those_who_are_missing_then) {
  const UniqueId id = *open_bootstrap(on_interface("lo"));
  std::future<Result<Joined>> later = std::async(std::launch::async, [&] {
    std::this_thread::sleep_for(250ms);
    return join(request_of(id, 3, 5), Deadline::after(10s));
  });
  std::vector<Result<Joined>> results;
  results.push_back(join(request_of(id, 1, 5), Deadline::after(400ms)));
  expect_failures(results, fcclTimeout, {"2 of 5", "missing: ranks 0, 2, 4"});
  EXPECT_FALSE(later.get());
}

TEST(Bootstrap, an_id_makes_one_communicator) {
  const Census census;
  const UniqueId id = *open_bootstrap(on_interface("lo"));
  for (const Result<Joined>& result : join_all(requests_of(id, 2))) EXPECT_TRUE(result);
  expect_failures(join_all(requests_of(id, 2)), fcclRemoteError, {"made its communicator already"});
}

TEST(Bootstrap, a_fork_while_ranks_join_harms_nobody) {
  const Census census;
  const UniqueId id = *open_bootstrap(on_interface("lo"));
  std::future<Result<Joined>> first =
      std::async(std::launch::async, [&] { return join(request_of(id, 0, 2), Deadline::after(5s)); });
  std::this_thread::sleep_for(50ms);
  // The child holds copies of every socket until it is killed.
  const pid_t child = ::fork();
  if (child == 0)
    while (true) ::pause();
  EXPECT_TRUE(join(request_of(id, 1, 2), Deadline::after(5s)));
  EXPECT_TRUE(first.get());
  std::this_thread::sleep_for(50ms);
  expect_failures(join_all({request_of(id, 1, 2)}, 1s), fcclRemoteError, {"made its communicator already"});
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

TEST(Join, ends_with_the_reason_why_it_is_no_longer_wanted_and_tells_the_others) {
  const Result<UniqueId> id = open_bootstrap(Settings{});
  ASSERT_TRUE(id);
  auto other = std::async(std::launch::async, [&] { return join(request_of(*id, 1, 3), Deadline::after(10s)); });
  const Deadline wanted_until = Deadline::after(100ms);
  const auto check = [&]() -> Result<void> {
    if (wanted_until.passed()) return fail(fcclRemoteError, "rank 2 died");
    return {};
  };
  const Result<Joined> ended = join(request_of(*id, 0, 3), {Deadline::after(10s), check});
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, fcclRemoteError);
  EXPECT_EQ(ended.error().message, "rank 2 died");
  EXPECT_FALSE(wanted_until.at + 1s < Clock::now());
  EXPECT_FALSE(other.get());
}

}  // namespace
}  // namespace fccl::core
