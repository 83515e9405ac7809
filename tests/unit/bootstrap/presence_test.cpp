// Tests of what ranks that have the roster hear of each other until they leave.
#include "bootstrap/presence.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>

#include "discovery/host_identity.h"
#include "sockets/socket.h"
#include "unit/bootstrap/joining.h"

namespace fccl::core {
namespace {

// The error that the rank is told, if that happens within 5 s.
Error told(Joined& joined) {
  for (const Deadline deadline = Deadline::after(5s); !deadline.passed(); std::this_thread::sleep_for(1ms))
    if (const Result<void> looked = joined.presence.look(); !looked) return looked.error();
  return {fcclSuccess, "nothing was told"};
}

void expect_text(const Error& error, fcclResult_t code, const std::vector<std::string>& pieces) {
  EXPECT_EQ(error.code, code) << error.message;
  for (const std::string& piece : pieces)
    EXPECT_NE(error.message.find(piece), std::string::npos) << piece << "\nis not in\n" << error.message;
}

std::vector<Joined> joined_all(const std::vector<JoinRequest>& requests) {
  std::vector<Joined> all;
  for (Result<Joined>& joined : join_all(requests)) {
    if (!joined) throw std::runtime_error(joined.error().message);
    all.push_back(std::move(*joined));
  }
  return all;
}

// A process that joins as `rank`, does `act` with what it has, and stays.
pid_t rank_process(const JoinRequest& request, const std::function<void(Joined&)>& act = {}) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  auto joined = join(request, Deadline::after(10s));
  if (!joined) ::_exit(1);
  if (act) act(*joined);
  while (true) ::pause();
}

void kill_and_wait(pid_t child) {
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

// Three requests of which the last is a process's.
struct WithProcess {
  explicit WithProcess(const std::function<void(Joined&)>& act = {})
      : requests(requests_of(*open_bootstrap(on_interface("lo")), 3)) {
    child = rank_process(requests.back(), act);
    requests.pop_back();
    joined = joined_all(requests);
  }
  ~WithProcess() {
    if (child > 0) kill_and_wait(child);
  }
  void kill() { kill_and_wait(std::exchange(child, 0)); }

  std::vector<JoinRequest> requests;
  std::vector<Joined> joined;
  pid_t child = 0;
};

TEST(Presence, of_a_rank_that_is_killed_ends_for_all_others_by_name) {
  const Census census;
  WithProcess ranks;
  const std::string name = "rank 2 (pid " + std::to_string(ranks.child);
  std::this_thread::sleep_for(50ms);
  for (Joined& joined : ranks.joined) EXPECT_TRUE(joined.presence.look());
  const auto begin = Clock::now();
  ranks.kill();
  for (Joined& joined : ranks.joined)
    expect_text(told(joined), fcclRemoteError, {name, "ended before the communicator was ready"});
  EXPECT_LT(Clock::now() - begin, 1s);
}

TEST(Presence, of_a_rank_that_is_killed_is_not_kept_up_by_a_fork_of_it) {
  WithProcess ranks([](Joined&) {
    if (::fork() != 0) return;
    ::sleep(3);
    ::_exit(0);
  });
  std::this_thread::sleep_for(100ms);
  const auto begin = Clock::now();
  ranks.kill();
  for (Joined& joined : ranks.joined) expect_text(told(joined), fcclRemoteError, {"rank 2 (pid"});
  EXPECT_LT(Clock::now() - begin, 2s);
}

TEST(Presence, of_a_stopped_rank_is_no_end) {
  WithProcess ranks;
  ::kill(ranks.child, SIGSTOP);
  std::this_thread::sleep_for(200ms);
  for (Joined& joined : ranks.joined) EXPECT_TRUE(joined.presence.look());
}

TEST(Presence, of_a_rank_that_left_ends_for_nobody_also_when_it_dies) {
  WithProcess ranks([](Joined& joined) { joined.presence.leave(); });
  std::this_thread::sleep_for(100ms);
  ranks.kill();
  std::this_thread::sleep_for(100ms);
  for (Joined& joined : ranks.joined) EXPECT_TRUE(joined.presence.look());
}

TEST(Presence, of_all_who_leave_one_by_one_leaves_nothing) {
  const Census census;
  std::vector<Joined> ranks = joined_all(requests_of(*open_bootstrap(on_interface("lo")), 5));
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    ranks[rank].presence.leave();
    EXPECT_TRUE(ranks[rank].presence.look());
    std::this_thread::sleep_for(20ms);
    for (Joined& other : ranks) EXPECT_TRUE(other.presence.look());
  }
}

TEST(Presence, given_up_tells_all_the_one_first_reason) {
  const Census census;
  std::vector<Joined> ranks = joined_all(requests_of(*open_bootstrap(on_interface("lo")), 4));
  const Error first = ranks[2].presence.give_up({fcclSystemError, "no memory"});
  expect_text(first, fcclSystemError, {"no memory", "rank 2 (pid " + std::to_string(::getpid())});
  EXPECT_EQ(ranks[1].presence.give_up({fcclTimeout, "too late"}).message, first.message);
  for (const int rank : {0, 3}) EXPECT_EQ(told(ranks[rank]).message, first.message);
}

TEST(Presence, given_up_for_what_another_one_did_waits_for_its_word) {
  std::vector<Joined> ranks = joined_all(requests_of(*open_bootstrap(on_interface("lo")), 2));
  std::jthread other([&] {
    std::this_thread::sleep_for(30ms);
    (void)ranks[0].presence.give_up({fcclSystemError, "no memory"});
  });
  const Error error = ranks[1].presence.give_up({fcclRemoteError, "rank 0 left"});
  expect_text(error, fcclSystemError, {"no memory", "rank 0 (pid"});
}

TEST(Presence, given_up_after_it_left_keeps_its_reason) {
  std::vector<Joined> ranks = joined_all(requests_of(*open_bootstrap(on_interface("lo")), 2));
  ranks[0].presence.leave();
  EXPECT_EQ(ranks[0].presence.give_up({fcclSystemError, "no memory"}).message, "no memory");
  std::this_thread::sleep_for(50ms);
  EXPECT_TRUE(ranks[1].presence.look());
}

TEST(Presence, names_the_rank_whose_process_served_the_id_and_died) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the thread sanitizer allows no threads in a child that was forked beside threads";
#endif
  ServedElsewhere served;
  ASSERT_NO_FATAL_FAILURE(served.begin([](const UniqueId& id) {
    const auto joined = join(request_of(id, 0, 3), Deadline::after(10s));
    while (true) ::pause();
  }));
  const UniqueId id = *from_c(served.id);
  std::vector<Joined> ranks = joined_all({request_of(id, 1, 3), request_of(id, 2, 3)});
  kill_and_wait(served.child);
  const std::string name = "rank 0 (pid " + std::to_string(served.child);
  for (Joined& joined : ranks) expect_text(told(joined), fcclRemoteError, {name, "serves the unique id", "ended"});
}

TEST(Presence, of_ranks_that_let_their_root_end_goes_on_without_it) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the thread sanitizer allows no threads in a child that was forked beside threads";
#endif
  ServedElsewhere served;
  ASSERT_NO_FATAL_FAILURE(served.begin([](const UniqueId& id) {
    const auto joined = join(request_of(id, 0, 2), Deadline::after(10s));
    while (true) ::pause();
  }));
  std::vector<Joined> ranks = joined_all({request_of(*from_c(served.id), 1, 2)});
  ranks[0].presence.let_root_end();
  kill_and_wait(served.child);
  std::this_thread::sleep_for(100ms);
  EXPECT_TRUE(ranks[0].presence.look());
  EXPECT_EQ(ranks[0].presence.give_up({fcclSystemError, "no memory"}).message, "no memory");
}

TEST(Presence, keeps_the_door_closed_for_one_too_many) {
  const UniqueId id = *open_bootstrap(on_interface("lo"));
  const std::vector<Joined> ranks = joined_all(requests_of(id, 2));
  const auto begin = Clock::now();
  std::vector<Result<Joined>> late;
  late.push_back(join(request_of(id, 1, 2), Deadline::after(10s)));
  expect_failures(late, fcclRemoteError, {"made its communicator already"});
  EXPECT_LT(Clock::now() - begin, 1s);
}

TEST(Declining, tells_those_who_wait_and_those_who_come_why_a_rank_cannot_join) {
  const Census census;
  const UniqueId id = *open_bootstrap(on_interface("lo"));
  std::vector<Result<Joined>> results(3);
  {
    std::jthread waiting([&] { results[0] = join(request_of(id, 0, 4), Deadline::after(10s)); });
    std::this_thread::sleep_for(100ms);
    const auto begin = Clock::now();
    decline(request_of(id, 3, 4), {fcclInvalidUsage, "FCCL_SLOT_BYTES=7 cannot be"});
    EXPECT_LT(Clock::now() - begin, 1s);
    for (const int late : {1, 2}) results[late] = join(request_of(id, late, 4), Deadline::after(10s));
  }
  expect_failures(
      results, fcclInvalidUsage,
      {"rank 3 (pid " + std::to_string(::getpid()) + " on " + host_name() + ") could not join", "FCCL_SLOT_BYTES=7 cannot be"});
}

TEST(Declining, by_all_leaves_nothing) {
  const Census census;
  const UniqueId id = *open_bootstrap(on_interface("lo"));
  for (const int rank : {0, 1}) decline(request_of(id, rank, 2), {fcclInvalidUsage, std::string(5000, 'x')});
}

TEST(Declining, of_an_id_that_nobody_serves_is_over_at_once) {
  UniqueId id = *open_bootstrap(on_interface("lo"));
  id.root.port = 1;
  const auto begin = Clock::now();
  decline(request_of(id, 0, 2), {fcclInvalidUsage, "no"});
  EXPECT_LT(Clock::now() - begin, 1s);
}

TEST(Bootstrap, a_rank_without_a_door_of_its_own_says_so_to_the_others) {
  const UniqueId id = *open_bootstrap(on_interface("lo"));
  std::vector<JoinRequest> requests = requests_of(id, 3);
  requests[0].settings.interface_name = "no_such_interface";
  const auto begin = Clock::now();
  const std::vector<Result<Joined>> results = join_all(requests);
  EXPECT_LT(Clock::now() - begin, 2s);
  expect_failures(results, fcclInvalidUsage, {"no_such_interface", "FCCL_SOCKET_IFNAME"});
  for (const int rank : {1, 2})
    EXPECT_NE(results[rank].error().message.find("rank 0 (pid"), std::string::npos) << results[rank].error().message;
}

}  // namespace
}  // namespace fccl::core
