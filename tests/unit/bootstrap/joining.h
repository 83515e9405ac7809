// Tools that the tests of the bootstrap share: ranks as threads, and a census of descriptors and threads.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "bootstrap/bootstrap.h"

namespace fccl::core {

using namespace std::chrono_literals;

// The thread sanitizer allows no threads in a child that was forked beside threads.
#if defined(__SANITIZE_THREAD__)
inline constexpr bool kForksMayStartThreads = false;
#else
inline constexpr bool kForksMayStartThreads = true;
#endif

inline Settings on_interface(const std::string& name) {
  Settings settings;
  settings.interface_name = name;
  return settings;
}

// FCCL_TEST_RANKS_PER_HOST spreads the ranks of all tests over hosts; without it, 0, they are all on the host of the root.
inline int ranks_per_host() {
  const char* per_host = std::getenv("FCCL_TEST_RANKS_PER_HOST");
  return per_host == nullptr ? 0 : std::stoi(per_host);
}

// Names the host of a rank.
inline std::string host_of_rank(int rank) {
  return ranks_per_host() == 0 ? std::string() : "host-" + std::to_string(rank / ranks_per_host());
}

inline JoinRequest request_of(const UniqueId& id, int rank, int nranks, std::string agreement = "protocol=1\nlanes=2") {
  JoinRequest request{id, rank, nranks, std::move(agreement), host_of_rank(rank)};
  // On hosts of their own few ranks have collectors, too.
  if (ranks_per_host() != 0 && kForksMayStartThreads) request.most_direct = 0;
  return request;
}

// Joins all requests at the same time, each on a thread of its own.
inline std::vector<Result<Joined>> join_all(const std::vector<JoinRequest>& requests,
                                            std::chrono::milliseconds patience = 10s) {
  std::vector<Result<Joined>> results(requests.size());
  {
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < requests.size(); ++i)
      threads.emplace_back([&, i] { results[i] = join(requests[i], Deadline::after(patience)); });
  }
  return results;
}

inline std::vector<JoinRequest> requests_of(const UniqueId& id, int nranks) {
  std::vector<JoinRequest> requests;
  for (int rank = 0; rank < nranks; ++rank) requests.push_back(request_of(id, rank, nranks));
  return requests;
}

// Every one failed with that code and a text that has all the pieces.
inline void expect_failures(const std::vector<Result<Joined>>& results, fcclResult_t code,
                            const std::vector<std::string>& pieces) {
  for (const Result<Joined>& result : results) {
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, code) << result.error().message;
    for (const std::string& piece : pieces)
      EXPECT_NE(result.error().message.find(piece), std::string::npos) << piece << "\nis not in\n" << result.error().message;
  }
}

// A unique id that a child process serves until it is killed.
struct ServedElsewhere {
  pid_t child = -1;
  fcclUniqueId id{};

  // `go_on` is what the child does with its id before it only waits.
  void begin(const std::function<void(const UniqueId& id)>& go_on = {}) {
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe(ends.data()), 0);
    child = ::fork();
    if (child == 0) {
      const fcclUniqueId made = to_c(*open_bootstrap(on_interface("lo")));
      if (::write(ends[1], &made, sizeof(made)) != sizeof(made)) ::_exit(1);
      if (go_on) go_on(*from_c(made));
      while (true) ::pause();
    }
    ::close(ends[1]);
    ASSERT_EQ(::read(ends[0], &id, sizeof(id)), static_cast<ssize_t>(sizeof(id)));
    ::close(ends[0]);
  }
};

// Fails the test in which it lives if that leaves a descriptor or a thread behind.
class Census {
 public:
  Census() {
    // A sanitizer starts a thread of its own with the first one.
    std::jthread([] {}).join();
    descriptors_ = count("fd");
    threads_ = count("task");
  }
  ~Census() {
    // The thread of the bootstrap ends a moment after the last rank has its roster.
    for (const Deadline deadline = Deadline::after(2s); !deadline.passed(); std::this_thread::sleep_for(1ms))
      if (count("fd") <= descriptors_ && count("task") <= threads_) return;
    ADD_FAILURE() << count("fd") - descriptors_ << " descriptors and " << count("task") - threads_ << " threads were left";
  }

 private:
  static ptrdiff_t count(const std::string& what) {
    return std::distance(std::filesystem::directory_iterator("/proc/self/" + what), std::filesystem::directory_iterator());
  }

  ptrdiff_t descriptors_ = 0;
  ptrdiff_t threads_ = 0;
};

}  // namespace fccl::core
