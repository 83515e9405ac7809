// Tools that the tests of the link between hosts share: leaders as threads of one process, and what their links tell them.
#pragma once

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <condition_variable>
#include <csignal>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "host_link/host_link.h"
#include "os/process_watch.h"
#include "sockets/network_interface.h"
#include "sockets/socket.h"
#include "waiting/wait_limit.h"

namespace fccl::core {

using namespace std::chrono_literals;

inline constexpr int kRanksPerHost = 2;
// A tree whose top has the children 1 and 2; host 1 has 3 and 4, and host 2 has 5 and 6.
inline constexpr int kInTree = 7, kTwoChildren = 2;

inline int leader_of(int host) { return host * kRanksPerHost; }

// Hosts of two ranks each, whose leaders are their first ones, and the listeners of those that have children.
struct Hosts {
  explicit Hosts(int hosts, int most_children = kMostChildren)
      : tree(hosts, most_children), listeners(static_cast<size_t>(hosts)) {
    fill_random(id.key);
    for (int host = 0; host < hosts; ++host) {
      leaders.push_back({leader_of(host), ::getpid(), host, "host-" + std::to_string(host), ""});
      for (int rank = 0; rank < kRanksPerHost; ++rank) host_of.push_back(host);
      if (host != LeaderTree::kTop && tree.children_of(host).empty()) continue;
      listeners[host] = std::move(*listen_tcp({false, {127, 0, 0, 1}, 0}));
      leaders.back().address = to_text(*address_of(listeners[host].get()));
    }
  }

  HostLinkRequest request(int host) const { return {id, leader_of(host), leaders, host_of, tree}; }
  int size() const { return static_cast<int>(leaders.size()); }
  Address top() const { return *address_from(leaders[0].address); }

  Result<std::unique_ptr<HostLink>> meet(int host, std::chrono::milliseconds patience = 20s,
                                         const CancelCheck& cancel_check = {}) {
    return HostLink::meet(request(host), std::move(listeners[host]), {Deadline::after(patience), cancel_check});
  }
  // For a process that is the leader of one host.
  void keep_only(int host) {
    for (int other = 0; other < size(); ++other)
      if (other != host) listeners[other].close();
  }

  UniqueId id;
  LeaderTree tree;
  std::vector<Descriptor> listeners;
  std::vector<Member> leaders;
  std::vector<int> host_of;
};

// Does something for each host on a thread of its own.
inline void on_all(int hosts, const std::function<void(int)>& act) {
  std::vector<std::jthread> threads;
  for (int host = 0; host < hosts; ++host) threads.emplace_back(act, host);
}

// The events that one link told; outlives it. As "failed: text", "gone: 3 died", "cut: 2 broken", "unheard: 4 through 2",
// "look".
class Heard {
 public:
  LinkEvents events() {
    return {
        [this](const Error& error) { add("failed: " + error.message); },
        [this](const Departure& departure) {
          add("gone: " + std::to_string(departure.rank) + (departure.how == PeerStatus::left ? " left" : " died"));
        },
        [this](const LongWait& wait) { add("waits: " + std::to_string(wait.rank) + " for " + std::to_string(wait.awaited)); },
        [this](int leader, LinkEnd how) {
          add("cut: " + std::to_string(leader) + (how == LinkEnd::goodbye ? " goodbye" : " broken"));
        },
        [this](int leader, int through) { add("unheard: " + std::to_string(leader) + " through " + std::to_string(through)); },
        [this] {
          add("look");
          return LinkNews{};
        }};
  }

  std::vector<std::string> all() const {
    const std::lock_guard lock(mutex_);
    return lines_;
  }
  // Once there are that many, or after long enough.
  std::vector<std::string> first(size_t count) const {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, 10s, [&] { return lines_.size() >= count; });
    return lines_;
  }

 private:
  void add(std::string line) {
    const std::lock_guard lock(mutex_);
    lines_.push_back(std::move(line));
    changed_.notify_all();
  }

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::vector<std::string> lines_;
};

inline void tell_failure(HostLink& link, const Error& error) { link.tell({.failure = error}); }
inline void tell_wait(HostLink& link, int rank, int awaited) { link.tell({.waits = {{rank, awaited}}}); }
inline void tell_gone(HostLink& link, int rank, PeerStatus how) { link.tell({.departures = {{rank, how}}}); }

inline Descriptor make_wake() { return Descriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)); }

// Links of all hosts that have met and started.
struct Linked {
  explicit Linked(int count, int most_children = kMostChildren) : hosts(count, most_children), heard(count), links(count) {
    on_all(count, [&](int host) {
      auto met = hosts.meet(host);
      ASSERT_TRUE(met) << met.error().message;
      links[host] = std::move(*met);
      const auto started = links[host]->start(make_wake(), {}, heard[host].events());
      ASSERT_TRUE(started) << started.error().message;
    });
  }

  Hosts hosts;
  std::vector<Heard> heard;
  std::vector<std::unique_ptr<HostLink>> links;
};

// Links of hosts, of which one is a process of its own.
struct Foreign {
  explicit Foreign(int foreign, int count = 3, int most_children = kMostChildren)
      : hosts(count, most_children), heard(count), links(count) {
    child = ::fork();
    if (child == 0) {
      hosts.keep_only(foreign);
      Heard own;
      auto link = hosts.meet(foreign);
      if (!link || !(*link)->start(make_wake(), {}, own.events())) ::_exit(1);
      while (true) ::pause();
    }
    hosts.listeners[foreign].close();
    on_all(count, [&](int host) {
      if (host == foreign) return;
      auto met = hosts.meet(host);
      ASSERT_TRUE(met) << met.error().message;
      links[host] = std::move(*met);
      ASSERT_TRUE(links[host]->start(make_wake(), {}, heard[host].events()));
    });
  }
  ~Foreign() { kill(); }
  void kill() {
    if (child == 0) return;
    ::kill(child, SIGKILL);
    ::waitpid(std::exchange(child, 0), nullptr, 0);
  }

  Hosts hosts;
  std::vector<Heard> heard;
  std::vector<std::unique_ptr<HostLink>> links;
  pid_t child = 0;
};

#if defined(__SANITIZE_THREAD__)
#define NOT_UNDER_THREAD_SANITIZER() \
  GTEST_SKIP() << "the thread sanitizer allows no threads in a child that was forked beside threads"
#else
#define NOT_UNDER_THREAD_SANITIZER() (void)0
#endif

}  // namespace fccl::core
