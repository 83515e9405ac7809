// Tests of how leaders of hosts meet and exchange bytes, and of what ends that early.
#include <sys/wait.h>

#include <csignal>
#include <future>

#include "linking.h"
#include "unit/bootstrap/joining.h"

namespace fccl::core {
namespace {

// Depends on all three; sizes 0, 1, about 100 KB and odd ones.
std::string blob_of(int host, int turn) {
  constexpr std::array<size_t, 5> kSizes{0, 1, 100 * 1024, 4000, 4001};
  std::string blob(kSizes[(host + turn) % kSizes.size()], '\0');
  for (size_t i = 0; i < blob.size(); ++i) blob[i] = static_cast<char>((host + 1) * 31 + turn * 7 + static_cast<int>(i) * 13);
  return blob;
}

struct HostsInTree {
  int hosts;
  int most_children;
};
class HostsMeet : public testing::TestWithParam<HostsInTree> {};

TEST_P(HostsMeet, and_every_leader_learns_the_bytes_of_all_in_each_exchange) {
  const Census census;
  Hosts hosts(GetParam().hosts, GetParam().most_children);
  on_all(hosts.size(), [&](int host) {
    auto link = hosts.meet(host);
    ASSERT_TRUE(link) << link.error().message;
    for (int turn = 0; turn < 5; ++turn) {
      const auto all = (*link)->exchange(blob_of(host, turn), Deadline::after(20s));
      ASSERT_TRUE(all) << all.error().message;
      ASSERT_EQ(all->size(), static_cast<size_t>(hosts.size()));
      for (int other = 0; other < hosts.size(); ++other) EXPECT_EQ((*all)[other], blob_of(other, turn)) << other << " " << turn;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(HostLink, HostsMeet,
                         testing::Values(HostsInTree{1, 16}, HostsInTree{2, 16}, HostsInTree{5, 16}, HostsInTree{33, 16},
                                         HostsInTree{33, 33}, HostsInTree{4, 1}, HostsInTree{12, 2}, HostsInTree{13, 3}),
                         [](const auto& tested) {
                           return std::to_string(tested.param.hosts) + "_hosts_of_" +
                                  std::to_string(tested.param.most_children) + "_children";
                         });

TEST(HostLinkCreation, the_largest_blobs_are_exchanged_and_larger_ones_refused) {
  Hosts hosts(3);
  on_all(3, [&](int host) {
    auto link = *hosts.meet(host);
    const auto all = link->exchange(std::string(kBlobLimit, static_cast<char>('a' + host)), Deadline::after(20s));
    ASSERT_TRUE(all) << all.error().message;
    for (int other = 0; other < 3; ++other) EXPECT_EQ((*all)[other], std::string(kBlobLimit, static_cast<char>('a' + other)));
    EXPECT_EQ(link->exchange(std::string(kBlobLimit + 1, 'x'), Deadline::after(1s)).error().code, fcclInternalError);
  });
}

TEST(HostLinkCreation, who_has_everything_may_leave_while_others_still_read) {
  Hosts hosts(3);
  std::vector<Heard> heard(3);
  on_all(3, [&](int host) {
    auto link = *hosts.meet(host);
    if (host == 2) std::this_thread::sleep_for(100ms);
    const auto all = link->exchange(std::string(200000, 'x'), Deadline::after(20s));
    ASSERT_TRUE(all) << all.error().message;
    if (host == 1) return;
    ASSERT_TRUE(link->start(make_wake(), {}, heard[host].events()));
    EXPECT_EQ(heard[host].first(1).front(), "cut: 2 goodbye") << host;
    if (host == 0) std::this_thread::sleep_for(100ms);
  });
}

// Runs one leader as a process that does `act` with its link and ends as that returns.
pid_t leader_process(Hosts& hosts, int host, const std::function<void(HostLink&)>& act) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  hosts.keep_only(host);
  auto link = hosts.meet(host);
  if (!link) ::_exit(1);
  act(**link);
  ::_exit(0);
}

// Kills it after the leaders have met, unless the machine is slow.
std::jthread kill_soon(pid_t child) {
  return std::jthread([child] {
    std::this_thread::sleep_for(200ms);
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  });
}

void expect_text(const Error& error, const std::vector<std::string>& pieces) {
  for (const std::string& piece : pieces)
    EXPECT_NE(error.message.find(piece), std::string::npos) << piece << "\nis not in\n" << error.message;
}

// The error with which meet or the exchange after it ended.
Error meet_and_exchange(Hosts& hosts, int host, std::chrono::milliseconds patience, const CancelCheck& cancel_check = {}) {
  auto link = hosts.meet(host, patience, cancel_check);
  if (!link) return link.error();
  const auto all = (*link)->exchange("bytes", {Deadline::after(patience), cancel_check});
  return all ? Error{fcclSuccess, "it succeeded"} : all.error();
}

TEST(HostLinkCreation, a_leader_that_is_killed_is_named_on_all_others_at_once) {
  Hosts hosts(4);
  const pid_t child = leader_process(hosts, 2, [](HostLink&) { ::pause(); });
  std::vector<Error> errors(4);
  const std::jthread killer = kill_soon(child);
  const auto begin = Clock::now();
  on_all(4, [&](int host) {
    if (host != 2) errors[host] = meet_and_exchange(hosts, host, 20s);
  });
  EXPECT_LT(Clock::now() - begin, 5s);
  for (const int host : {0, 1, 3}) {
    EXPECT_EQ(errors[host].code, fcclRemoteError);
    expect_text(errors[host], {"rank 4 (pid", "host-2", "ended before the communicator was ready"});
  }
}

TEST(HostLinkCreation, a_top_that_is_killed_is_named_on_all_others_at_once) {
  Hosts hosts(3);
  const pid_t child = leader_process(hosts, 0, [](HostLink&) { ::pause(); });
  hosts.listeners[0].close();
  const std::jthread killer = kill_soon(child);
  const auto begin = Clock::now();
  on_all(3, [&](int host) {
    if (host == 0) return;
    const Error error = meet_and_exchange(hosts, host, 20s);
    EXPECT_EQ(error.code, fcclRemoteError);
    expect_text(error, {"rank 0 (pid", "host-0", "ended before the communicator was ready"});
  });
  EXPECT_LT(Clock::now() - begin, 5s);
}

TEST(HostLinkCreation, a_leader_that_never_comes_is_named_by_all_at_the_deadline) {
  Hosts hosts(4);
  const auto begin = Clock::now();
  on_all(4, [&](int host) {
    if (host == 3) return;
    const Error error = meet_and_exchange(hosts, host, host == 0 ? 600ms : 500ms);
    EXPECT_EQ(error.code, fcclTimeout);
    expect_text(error, {"missing: rank 6 (pid", "host-3", "FCCL_INIT_TIMEOUT"});
  });
  EXPECT_LT(Clock::now() - begin, 5s);
}

TEST(HostLinkCreation, a_leader_at_the_bottom_of_a_tree_that_never_comes_is_named_by_all_at_the_deadline) {
  Hosts hosts(kInTree, kTwoChildren);
  on_all(kInTree, [&](int host) {
    if (host == 6) return;
    const Error error = meet_and_exchange(hosts, host, 2s);
    EXPECT_EQ(error.code, fcclTimeout);
    expect_text(error, {"missing: rank 12 (pid", "host-6", "FCCL_INIT_TIMEOUT"});
  });
}

TEST(HostLinkCreation, a_leader_in_a_tree_that_is_killed_is_named_on_all_others_at_once) {
  Hosts hosts(kInTree, kTwoChildren);
  const pid_t child = leader_process(hosts, 1, [](HostLink&) { ::pause(); });
  hosts.listeners[1].close();
  const std::jthread killer = kill_soon(child);
  const auto begin = Clock::now();
  on_all(kInTree, [&](int host) {
    if (host == 1) return;
    const Error error = meet_and_exchange(hosts, host, 20s);
    EXPECT_EQ(error.code, fcclRemoteError);
    expect_text(error, {"rank 2 (pid", "host-1"});
  });
  EXPECT_LT(Clock::now() - begin, 5s);
}

TEST(HostLinkCreation, who_has_everything_may_leave_while_its_parent_still_tells_others) {
  Hosts hosts(kInTree, kTwoChildren);
  on_all(kInTree, [&](int host) {
    auto link = hosts.meet(host);
    ASSERT_TRUE(link) << link.error().message;
    if (host > 4) std::this_thread::sleep_for(100ms);
    const auto all = (*link)->exchange(std::string(200000, 'x'), Deadline::after(20s));
    EXPECT_TRUE(all) << host << all.error().message;
  });
}

TEST(HostLinkCreation, a_leader_without_bytes_is_named_by_all_at_the_deadline) {
  Hosts hosts(3);
  std::promise<void> over;
  const std::shared_future<void> waited = over.get_future().share();
  std::atomic<int> left = 2;
  on_all(3, [&](int host) {
    if (host == 2) {
      const auto link = hosts.meet(2);
      ASSERT_TRUE(link) << link.error().message;
      return waited.wait();
    }
    const Error error = meet_and_exchange(hosts, host, host == 0 ? 600ms : 500ms);
    if (--left == 0) over.set_value();
    EXPECT_EQ(error.code, fcclTimeout);
    expect_text(error, {"missing: rank 4 (pid", "host-2", "FCCL_INIT_TIMEOUT"});
  });
}

TEST(HostLinkCreation, a_top_that_cannot_be_reached_is_named_at_the_deadline) {
  Hosts hosts(2);
  // Nobody takes connections there, but the kernel does.
  const auto begin = Clock::now();
  const auto met = hosts.meet(1, 300ms);
  ASSERT_FALSE(met);
  EXPECT_EQ(met.error().code, fcclTimeout);
  expect_text(met.error(), {"rank 0 (pid", "host-0", hosts.leaders[0].address, "FCCL_INIT_TIMEOUT"});
  EXPECT_LT(Clock::now() - begin, 3s);
}

TEST(HostLinkCreation, a_top_that_no_longer_listens_is_an_error_at_once) {
  Hosts hosts(2);
  hosts.listeners[0].close();
  const auto begin = Clock::now();
  const auto met = hosts.meet(1, 20s);
  ASSERT_FALSE(met);
  EXPECT_EQ(met.error().code, fcclRemoteError);
  expect_text(met.error(), {"rank 2 (pid", "rank 0 (pid", "nobody listens"});
  EXPECT_LT(Clock::now() - begin, 5s);
}

TEST(HostLinkCreation, a_leader_whose_host_no_longer_wants_it_tells_the_others_why) {
  Hosts hosts(3);
  const auto begin = Clock::now();
  on_all(3, [&](int host) {
    CancelCheck cancel_check;
    if (host == 1)
      cancel_check = [until = Deadline::after(100ms)]() -> Result<void> {
        if (until.passed()) return fail(fcclInvalidUsage, "the user is tired");
        return {};
      };
    // Host 2 comes too late for what host 1 and 0 wait for.
    if (host == 2) std::this_thread::sleep_for(300ms);
    const Error error = meet_and_exchange(hosts, host, 20s, cancel_check);
    if (host == 1) {
      EXPECT_EQ(error.code, fcclInvalidUsage);
      EXPECT_EQ(error.message, "the user is tired");
    } else if (host == 0) {
      EXPECT_EQ(error.code, fcclRemoteError);
      expect_text(error, {"rank 2 (pid", "gave up", "the user is tired"});
    } else {
      expect_text(error, {"rank 0 (pid", "nobody listens"});
    }
  });
  EXPECT_LT(Clock::now() - begin, 5s);
}

TEST(HostLinkCreation, a_failure_told_before_the_start_ends_the_others_waits) {
  Hosts hosts(3);
  on_all(3, [&](int host) {
    auto link = *hosts.meet(host);
    auto all = link->exchange("all are in", Deadline::after(20s));
    if (host == 1) return tell_failure(*link, {fcclSystemError, "no memory on host-1"});
    // The news may come while this host still reads.
    if (all) all = link->exchange("", Deadline::after(20s));
    ASSERT_FALSE(all);
    EXPECT_EQ(all.error().code, fcclSystemError);
    EXPECT_EQ(all.error().message, "no memory on host-1");
  });
}

TEST(HostLinkCreation, a_leader_that_leaves_without_a_reason_is_named) {
  Hosts hosts(3);
  on_all(3, [&](int host) {
    auto link = *hosts.meet(host);
    auto all = link->exchange("all are in", Deadline::after(20s));
    if (host == 1) return;
    // The news may come while this host still reads.
    if (all) all = link->exchange("", Deadline::after(20s));
    ASSERT_FALSE(all);
    EXPECT_EQ(all.error().code, fcclRemoteError);
    expect_text(all.error(), {"rank 2 (pid", "left before the communicator was ready"});
  });
}

}  // namespace
}  // namespace fccl::core
