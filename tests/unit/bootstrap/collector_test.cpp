// Tests of ranks that reach the root through the collector of their host, and of what they hear when it is gone or stopped.
#include "bootstrap/collector.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <functional>
#include <future>
#include <list>

#include "bootstrap/messages.h"
#include "bootstrap/presence.h"
#include "channels/channel.h"
#include "discovery/host_identity.h"
#include "sockets/socket.h"
#include "unit/bootstrap/joining.h"

namespace fccl::core {
namespace {

constexpr auto kLate = 700ms;

// Two ranks share a host that is not the root's.
JoinRequest request_on(const std::string& host, const UniqueId& id, int rank, int nranks) {
  JoinRequest request = request_of(id, rank, nranks);
  request.host_override = host;
  request.most_direct = 0;
  return request;
}

// A process whose only thread joins, and then stays.
struct Process {
  Process(const JoinRequest& request, std::chrono::milliseconds patience) : pid(::fork()) {
    if (pid != 0) return;
    const Result<Joined> joined = join(request, Deadline::after(patience));
    while (joined) ::pause();
    ::_exit(0);
  }
  ~Process() { kill(); }
  void kill() {
    if (pid <= 0) return;
    ::kill(pid, SIGKILL);
    ::waitpid(std::exchange(pid, 0), nullptr, 0);
  }
  std::string name(int rank) const { return "rank " + std::to_string(rank) + " (pid " + std::to_string(pid); }

  pid_t pid;
};

std::future<Result<Joined>> join_later(const JoinRequest& request, std::chrono::milliseconds patience = 10s) {
  return std::async(std::launch::async, [=] { return join(request, Deadline::after(patience)); });
}

void expect_error(const Error& error, const std::vector<std::string>& pieces) {
  for (const std::string& piece : pieces)
    EXPECT_NE(error.message.find(piece), std::string::npos) << piece << "\nis not in\n" << error.message;
}

std::string error_of(std::future<Result<Joined>>& joining) {
  const Result<Joined> joined = joining.get();
  return joined ? "it joined" : joined.error().message;
}

TEST(Collector, stands_at_the_door_of_a_host_and_hands_out_one_roster) {
  const Census census;
  const UniqueId id = *open_bootstrap(on_interface("lo"));
  std::vector<JoinRequest> requests;
  for (int rank = 0; rank < 6; ++rank) requests.push_back(request_on(rank < 3 ? "a" : "b", id, rank, 6));
  std::vector<Result<Joined>> all = join_all(requests);
  for (const Result<Joined>& joined : all) {
    ASSERT_TRUE(joined) << joined.error().message;
    EXPECT_EQ(joined->members, all[0]->members);
    EXPECT_EQ(joined->members[2].host, 0);
    EXPECT_EQ(joined->members[3].host, 1);
  }
}

TEST(Collector, lets_a_rank_in_past_strangers_at_its_door) {
  const Census census;
  const UniqueId id = *open_bootstrap(on_interface("lo"));
  auto collecting = join_later(request_on("a", id, 0, 2));
  std::this_thread::sleep_for(100ms);
  std::list<Descriptor> strangers;
  for (int i = 0; i < 400; ++i) {
    strangers.push_back(std::move(connect_local(door_name(id, host_identity("a")), 100ms).socket));
    ASSERT_TRUE(strangers.back());
    if (i % 2 == 0) write_some(strangers.back().get(), "GET / HTTP/1.1\r\n");
  }
  const auto begin = Clock::now();
  const Result<Joined> joined = join(request_on("a", id, 1, 2), Deadline::after(10s));
  EXPECT_TRUE(joined);
  EXPECT_TRUE(collecting.get());
  EXPECT_LT(Clock::now() - begin, 1s);
}

TEST(Collector, has_no_door_left_when_all_have_joined) {
  const UniqueId id = *open_bootstrap(on_interface("lo"));
  const std::vector<Result<Joined>> all = join_all({request_on("a", id, 0, 2), request_on("a", id, 1, 2)});
  for (const Result<Joined>& joined : all) ASSERT_TRUE(joined);
  EXPECT_EQ(connect_local(door_name(id, host_identity("a")), 1ms).error, ECONNREFUSED);
  std::vector<Result<Joined>> late;
  late.push_back(join(request_on("a", id, 1, 2), Deadline::after(10s)));
  expect_failures(late, fcclRemoteError, {"made its communicator already"});
}

TEST(Collector, passes_on_that_a_rank_of_its_host_died) {
  const UniqueId id = *open_bootstrap(on_interface("lo"));
  auto collecting = join_later(request_on("a", id, 2, 4)), elsewhere = join_later(request_on("b", id, 0, 4));
  std::this_thread::sleep_for(100ms);
  Process behind(request_on("a", id, 3, 4), 10s);
  const std::string name = behind.name(3);
  std::this_thread::sleep_for(200ms);
  const auto begin = Clock::now();
  behind.kill();
  for (auto* joining : {&collecting, &elsewhere})
    expect_error({fcclRemoteError, error_of(*joining)}, {name, "left while joining", "3 of 4", "missing: rank 1"});
  EXPECT_LT(Clock::now() - begin, 1s);
}

TEST(Collector, that_dies_is_named_on_its_host_and_on_others) {
  if (!kForksMayStartThreads) GTEST_SKIP() << "a child collects";
  const UniqueId id = *open_bootstrap(on_interface("lo"));
  Process collector(request_on("a", id, 2, 4), 10s);
  const std::string name = collector.name(2);
  std::this_thread::sleep_for(200ms);
  auto behind = join_later(request_on("a", id, 3, 4)), elsewhere = join_later(request_on("b", id, 0, 4));
  std::this_thread::sleep_for(200ms);
  const auto begin = Clock::now();
  collector.kill();
  expect_error({fcclRemoteError, error_of(behind)}, {name, "by which rank 3 reaches the root, left while ranks joined"});
  expect_error({fcclRemoteError, error_of(elsewhere)}, {name, "left while joining"});
  EXPECT_LT(Clock::now() - begin, 1s);
}

// Every joined rank hears that a rank has died since.
void expect_death(std::vector<Result<Joined>>& all, const std::string& name) {
  for (Result<Joined>& joined : all) {
    ASSERT_TRUE(joined) << joined.error().message;
    Result<void> looked;
    for (const Deadline until = Deadline::after(1s); looked && !until.passed(); std::this_thread::sleep_for(1ms))
      looked = joined->presence.look();
    ASSERT_FALSE(looked);
    expect_error(looked.error(), {name, "ended before the communicator was ready"});
  }
}

TEST(Collector, that_dies_after_the_roster_is_named_on_its_host_and_on_others) {
  if (!kForksMayStartThreads) GTEST_SKIP() << "a child collects";
  const UniqueId id = *open_bootstrap(on_interface("lo"));
  Process collector(request_on("a", id, 2, 4), 10s);
  const std::string name = collector.name(2);
  std::this_thread::sleep_for(200ms);
  std::vector<Result<Joined>> all = join_all({request_on("b", id, 0, 4), request_on("b", id, 1, 4), request_on("a", id, 3, 4)});
  for (const Result<Joined>& joined : all) ASSERT_TRUE(joined) << joined.error().message;
  collector.kill();
  expect_death(all, name);
}

// The root tells who is missing as long as ranks are.
TEST(Collector, passes_on_a_death_after_the_roster_also_if_it_knew_who_was_missing_before) {
  if (!kForksMayStartThreads) GTEST_SKIP() << "a child collects";
  const UniqueId id = *open_bootstrap(on_interface("lo"));
  Process dies(request_on("b", id, 2, 4), 10s);
  const std::string name = dies.name(2);
  auto early = join_later(request_on("a", id, 0, 4));
  std::this_thread::sleep_for(400ms);
  std::vector<Result<Joined>> all = join_all({request_on("a", id, 1, 4), request_on("b", id, 3, 4)});
  all.push_back(early.get());
  dies.kill();
  expect_death(all, name);
}

// The roster reaches only the other host.
TEST(Collector, that_is_stopped_is_named_on_its_host_and_in_place_of_those_whom_others_miss) {
  if (!kForksMayStartThreads) GTEST_SKIP() << "a child collects";
  const UniqueId id = *open_bootstrap(on_interface("lo"));
  Process collector(request_on("a", id, 2, 4), 10s);
  std::this_thread::sleep_for(200ms);
  auto behind = join_later(request_on("a", id, 3, 4), 2 * kLate), elsewhere = join_later(request_on("b", id, 0, 4));
  std::this_thread::sleep_for(200ms);
  ::kill(collector.pid, SIGSTOP);
  Result<Joined> last = join(request_on("b", id, 1, 4), Deadline::after(5s)), first = elsewhere.get();
  ASSERT_TRUE(last && first);
  const Error told = last->presence.give_up({MessageKind::late_for_init, "rank 3 did not come"});
  EXPECT_EQ(told.code, fcclTimeout);
  expect_error(told, {collector.name(2), "by which ranks of its host reach the root, does not answer, it may be stopped",
                      "rank 3 did not come", "told by rank 1 (pid"});
  EXPECT_EQ(first->presence.give_up({MessageKind::late_for_init, "rank 3 did not come"}).message, told.message);
  expect_error({fcclTimeout, error_of(behind)}, {collector.name(2), "does not answer any more, it may be stopped"});
}

TEST(Collector, whose_ranks_give_up_tells_them_who_is_missing) {
  const UniqueId id = *open_bootstrap(on_interface("lo"));
  const std::vector<Result<Joined>> all = join_all({request_on("a", id, 1, 4), request_on("a", id, 3, 4)}, 300ms);
  expect_failures(all, fcclTimeout, {"2 of 4", "missing: ranks 0, 2"});
}

TEST(Collector, says_of_a_stopped_root_that_it_is_the_one_who_does_not_answer) {
  if (!kForksMayStartThreads) GTEST_SKIP() << "a child serves the id";
  ServedElsewhere served;
  ASSERT_NO_FATAL_FAILURE(served.begin());
  const UniqueId id = *from_c(served.id);
  auto behind = join_later(request_on("a", id, 1, 3), kLate), collecting = join_later(request_on("a", id, 0, 3), kLate);
  std::this_thread::sleep_for(200ms);
  ::kill(served.child, SIGSTOP);
  for (auto* joining : {&behind, &collecting})
    expect_error({fcclTimeout, error_of(*joining)}, {"the root at " + to_text(id.root), "does not answer any more"});
  ::kill(served.child, SIGKILL);
  ::waitpid(served.child, nullptr, 0);
}

TEST(Collector, says_that_the_root_ended) {
  if (!kForksMayStartThreads) GTEST_SKIP() << "a child serves the id";
  const Census census;
  ServedElsewhere served;
  ASSERT_NO_FATAL_FAILURE(served.begin());
  const UniqueId id = *from_c(served.id);
  auto behind = join_later(request_on("a", id, 1, 3)), collecting = join_later(request_on("a", id, 0, 3));
  std::this_thread::sleep_for(200ms);
  const auto begin = Clock::now();
  ::kill(served.child, SIGKILL);
  ::waitpid(served.child, nullptr, 0);
  for (auto* joining : {&behind, &collecting})
    expect_error({fcclRemoteError, error_of(*joining)},
                 {"the root at " + to_text(id.root), "did not stay until all 3 ranks had"});
  EXPECT_LT(Clock::now() - begin, 1s);
}

TEST(Collector, is_there_only_for_more_than_64_ranks) {
  for (const int ranks : {64, 65}) {
    const UniqueId id = *open_bootstrap(on_interface("lo"));
    JoinRequest request = request_of(id, 0, ranks);
    request.host_override = "a";
    auto joining = join_later(request, 300ms);
    bool stands_at_door = false;
    for (const Deadline until = Deadline::after(200ms); !until.passed(); std::this_thread::sleep_for(1ms))
      stands_at_door = stands_at_door || connect_local(door_name(id, host_identity("a")), 1ms).socket;
    EXPECT_EQ(stands_at_door, ranks > 64 || request.most_direct == 0);
    EXPECT_FALSE(joining.get());
  }
}

// Beyond sixteen hosts a collector is below another one.
TEST(Collector, below_another_one_brings_its_ranks_the_same_roster_and_the_same_failure) {
  const Census census;
  for (const bool fails : {false, true}) {
    const UniqueId id = *open_bootstrap(on_interface("lo"));
    std::vector<JoinRequest> requests;
    for (int rank = 0; rank < 60; ++rank) requests.push_back(request_on("host" + std::to_string(rank / 3), id, rank, 60));
    if (fails) requests.back().agreement = "protocol=1\nlanes=3";
    const std::vector<Result<Joined>> all = join_all(requests);
    if (fails) {
      expect_failures(all, fcclInvalidUsage, {"\"lanes=2\"", "\"lanes=3\"", "rank 59 (pid"});
      continue;
    }
    for (const Result<Joined>& joined : all) {
      ASSERT_TRUE(joined) << joined.error().message;
      EXPECT_EQ(joined->members, all[0]->members);
    }
  }
}

// A place that nobody can reach does not keep a host out.
TEST(Collector, that_cannot_reach_its_place_comes_back_to_the_root) {
  const UniqueId id = *open_bootstrap(on_interface("lo"));
  // These claim the root's children's places, and an address at which nobody listens.
  std::list<Channel> children;
  for (int child = 0; child < 16; ++child) {
    Channel& channel = children.emplace_back(std::move(connect_tcp(id.root, Deadline::after(1s)).socket),
                                             Conversation(Role::connects, id.key, {child}));
    ASSERT_TRUE(channel.await_open(Deadline::after(1s)));
    const Hello hello{{child, ::getpid(), 0, "host", "name"}, 18, "protocol=1\nlanes=2", {}, -1, "host"};
    channel.say(encode(Batch{{{child, hello}}, Collects{"127.0.0.1:1"}}));
    ASSERT_TRUE(channel.await_sent(Deadline::after(1s)));
  }
  const std::vector<Result<Joined>> all = join_all({request_on("a", id, 16, 18), request_on("a", id, 17, 18)}, 8s);
  for (const Result<Joined>& joined : all) EXPECT_TRUE(joined) << joined.error().message;
}

}  // namespace
}  // namespace fccl::core
