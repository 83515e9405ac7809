// Tests of Arena: allocating, refusing, freeing, and the arena of a forked child.
#include "arena/arena.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "arena/peer_arena.h"
#include "arena/reservation.h"
#include "os/memory.h"

namespace fccl::core {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

// Runs `body` in a child with an arena of its own, and returns its result.
bool is_content_in_a_child(const std::function<bool()>& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body() ? 0 : 1);
  int status = -1;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

std::byte* allocate(size_t bytes) {
  const auto made = process_arena().allocate(bytes);
  EXPECT_TRUE(made) << made.error().message;
  return static_cast<std::byte*>(*made);
}

void give_back(void* memory) {
  const auto freed = process_arena().free(memory);
  EXPECT_TRUE(freed) << freed.error().message;
}

std::byte value_of(uint64_t allocation, size_t index) { return std::byte(1 + (allocation * 31 + index * 7) % 251); }

TEST(Arena, gives_memory_that_is_apart_aligned_and_writable_in_random_programs) {
  struct Allocation {
    std::byte* memory;
    size_t bytes;
    uint64_t number;
  };
  std::mt19937 generator(1);
  const auto below = [&](size_t bound) { return static_cast<size_t>(generator()) % bound; };
  std::vector<Allocation> live;
  const auto check_and_free = [&](size_t i) {
    const auto [memory, bytes, number] = live[i];
    for (size_t k = 0; k < bytes; ++k) ASSERT_EQ(memory[k], value_of(number, k)) << "allocation " << number << ", byte " << k;
    give_back(memory);
    live.erase(live.begin() + static_cast<long>(i));
  };
  for (uint64_t step = 0; step < 2000; ++step) {
    if (live.size() < 50 && below(2) == 0) {
      const size_t bytes = 1 + below(below(3) == 0 ? 300'000 : 500);
      std::byte* memory = allocate(bytes);
      ASSERT_EQ(reinterpret_cast<uintptr_t>(memory) % (bytes < kPageBytes ? 64 : kPageBytes), 0U);
      for (size_t k = 0; k < bytes; ++k) memory[k] = value_of(step, k);
      live.push_back({memory, bytes, step});
    } else if (!live.empty()) {
      check_and_free(below(live.size()));
    }
  }
  while (!live.empty()) check_and_free(0);
  EXPECT_EQ(process_arena().usage().bytes, 0U);
}

TEST(Arena, counts_what_is_allocated_and_the_most_that_was) {
  EXPECT_TRUE(is_content_in_a_child([] {
    std::byte* first = allocate(kMiB);
    std::byte* second = allocate(100);
    const ArenaUsage both = process_arena().usage();
    give_back(first);
    give_back(second);
    const ArenaUsage none = process_arena().usage();
    return both.bytes == kMiB + 128 && none.bytes == 0 && none.most == both.bytes;
  }));
}

TEST(Arena, is_not_made_before_the_first_allocation) {
  EXPECT_TRUE(is_content_in_a_child([] {
    if (process_arena().usage().reserved != 0 || !process_arena().free(nullptr) || *process_arena().allocate(0) != nullptr)
      return false;
    if (own_reservation() != nullptr) return false;
    allocate(1);
    return own_reservation() != nullptr;
  }));
}

TEST(Arena, takes_no_memory_before_it_is_written) {
  EXPECT_TRUE(is_content_in_a_child([] {
    std::byte* memory = allocate(64 * kMiB);
    const size_t before = process_arena().usage().filled;
    std::memset(memory, 1, kMiB);
    const size_t after = process_arena().usage().filled;
    return before < kMiB && after >= kMiB && after < 8 * kMiB;
  }));
}

TEST(Arena, keeps_the_memory_of_what_is_freed_up_to_a_bound_and_gives_the_rest_back) {
  EXPECT_TRUE(is_content_in_a_child([] {
    std::byte* small = allocate(kMiB);
    std::byte* large = allocate(300 * kMiB);
    std::memset(small, 1, kMiB);
    std::memset(large, 1, 300 * kMiB);
    give_back(small);
    const size_t kept = process_arena().usage().filled;
    give_back(large);
    const size_t left = process_arena().usage().filled;
    return kept > 300 * kMiB && left <= 256 * kMiB;
  }));
}

TEST(Arena, refuses_what_does_not_fit_its_addresses_and_goes_on) {
  EXPECT_TRUE(is_content_in_a_child([] {
    setenv("FCCL_ARENA_BYTES", "1048576", 1);
    const auto refused = process_arena().allocate(kMiB);
    if (refused || refused.error().code != fcclSystemError) return false;
    std::byte* half = allocate(kMiB / 2);
    const auto no_room = process_arena().allocate(kMiB / 2);
    if (no_room || no_room.error().message.find("FCCL_ARENA_BYTES") == std::string::npos) return false;
    give_back(half);
    return static_cast<bool>(process_arena().allocate(kMiB / 2));
  }));
}

TEST(Arena, refuses_what_the_machine_has_no_memory_for) {
  const size_t memory = static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
  EXPECT_TRUE(is_content_in_a_child([memory] {
    // Reserves few addresses, because a sanitizer leaves no room for many more.
    setenv("FCCL_ARENA_BYTES", std::to_string(3 * memory).c_str(), 1);
    const auto refused = process_arena().allocate(2 * memory);
    return !refused && refused.error().code == fcclSystemError &&
           refused.error().message.find("available") != std::string::npos && process_arena().usage().bytes == 0;
  }));
}

TEST(Arena, names_a_setting_that_means_nothing) {
  EXPECT_TRUE(is_content_in_a_child([] {
    setenv("FCCL_ARENA_BYTES", "much", 1);
    const auto refused = process_arena().allocate(1);
    return !refused && refused.error().code == fcclInvalidUsage &&
           refused.error().message.find("FCCL_ARENA_BYTES=much") != std::string::npos;
  }));
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// Limits this process to `bytes` more bytes of addresses.
bool leave_addresses(size_t bytes) {
  size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlimit limit{pages * kPageBytes + bytes, pages * kPageBytes + bytes};
  return setrlimit(RLIMIT_AS, &limit) == 0;
}

TEST(Arena, takes_a_quarter_of_the_addresses_that_a_limit_leaves_at_most) {
  EXPECT_TRUE(is_content_in_a_child([] {
    if (!leave_addresses(1024 * kMiB)) return false;
    std::byte* memory = allocate(kMiB);
    std::memset(memory, 1, kMiB);
    return process_arena().usage().reserved <= 256 * kMiB;
  }));
}

TEST(Arena, is_no_longer_than_files_may_be) {
  EXPECT_TRUE(is_content_in_a_child([] {
    const rlimit limit{64 * kMiB, 64 * kMiB};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return false;
    std::byte* memory = allocate(kMiB);
    std::memset(memory, 1, kMiB);
    return process_arena().usage().reserved <= 64 * kMiB;
  }));
}

TEST(Arena, refuses_where_the_limit_on_files_leaves_no_room) {
  EXPECT_TRUE(is_content_in_a_child([] {
    const rlimit limit{kPageBytes, kPageBytes};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return false;
    const auto refused = process_arena().allocate(kPageBytes);
    return !refused && refused.error().message.find("ulimit -f") != std::string::npos;
  }));
}

TEST(Arena, refuses_where_the_limit_on_addresses_leaves_no_room) {
  EXPECT_TRUE(is_content_in_a_child([] {
    if (!leave_addresses(0)) return false;
    const auto refused = process_arena().allocate(kPageBytes);
    return !refused && refused.error().code == fcclSystemError &&
           refused.error().message.find("ulimit -v") != std::string::npos;
  }));
}
#endif

TEST(Arena, refuses_to_free_what_it_did_not_give) {
  std::byte* memory = allocate(2 * kPageBytes);
  int other = 0;
  for (void* wrong : {static_cast<void*>(memory + 64), static_cast<void*>(&other)}) {
    const auto refused = process_arena().free(wrong);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, fcclInvalidArgument);
  }
  give_back(memory);
  EXPECT_FALSE(process_arena().free(memory));
}

TEST(Arena, serves_several_threads) {
  std::vector<std::thread> threads;
  for (uint64_t thread = 0; thread < 4; ++thread)
    threads.emplace_back([thread] {
      for (uint64_t i = 0; i < 300; ++i) {
        const size_t bytes = 1 + (thread * 37 + i * 101) % 9000;
        std::byte* memory = allocate(bytes);
        for (size_t k = 0; k < bytes; ++k) memory[k] = value_of(thread, k);
        for (size_t k = 0; k < bytes; ++k) ASSERT_EQ(memory[k], value_of(thread, k));
        give_back(memory);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(process_arena().usage().bytes, 0U);
}

TEST(ArenaOfAFork, reads_what_its_parent_wrote_and_changes_nothing_of_it) {
  std::byte* memory = allocate(3 * kPageBytes);
  for (size_t k = 0; k < 3 * kPageBytes; ++k) memory[k] = value_of(1, k);
  EXPECT_TRUE(is_content_in_a_child([&] {
    for (size_t k = 0; k < 3 * kPageBytes; ++k)
      if (memory[k] != value_of(1, k)) return false;
    for (size_t k = 0; k < 2 * kPageBytes; ++k) memory[k] = value_of(2, k);
    return memory[0] == value_of(2, 0) && memory[2 * kPageBytes] == value_of(1, 2 * kPageBytes);
  }));
  for (size_t k = 0; k < 3 * kPageBytes; ++k) ASSERT_EQ(memory[k], value_of(1, k)) << "byte " << k;
  give_back(memory);
}

TEST(ArenaOfAFork, may_free_its_parents_memory_without_harm) {
  std::byte* memory = allocate(kMiB);
  std::memset(memory, 5, kMiB);
  EXPECT_TRUE(is_content_in_a_child([&] { return process_arena().free(memory) && memory[kMiB - 1] == std::byte{5}; }));
  EXPECT_EQ(memory[kMiB / 2], std::byte{5});
  give_back(memory);
}

TEST(ArenaOfAFork, allocates_of_its_own_and_so_does_its_child) {
  std::byte* memory = allocate(kPageBytes);
  memory[0] = std::byte{1};
  EXPECT_TRUE(is_content_in_a_child([&] {
    std::byte* mine = allocate(kPageBytes);
    mine[0] = std::byte{2};
    if (mine == memory) return false;
    const bool well = is_content_in_a_child([&] {
      mine[0] = std::byte{3};
      memory[0] = std::byte{3};
      return process_arena().free(mine) && process_arena().free(memory);
    });
    return well && mine[0] == std::byte{2} && memory[0] == std::byte{1} && process_arena().free(mine);
  }));
  EXPECT_EQ(memory[0], std::byte{1});
  give_back(memory);
}

// Returns the name of this process's arena.
ArenaName name_of_own() {
  give_back(allocate(1));
  return name_of(*own_reservation());
}

TEST(PeerArena, of_another_process_shows_what_that_writes) {
  std::byte* memory = allocate(kPageBytes);
  memory[7] = std::byte{1};
  const ArenaName name = name_of_own();
  const pid_t parent = getpid();
  const auto offset = static_cast<uint64_t>(memory - own_reservation()->begin);
  int turn[2], back[2];
  ASSERT_EQ(pipe(turn) + pipe(back), 0);
  char word = 0;
  const pid_t child = fork();
  if (child == 0) {
    const auto mapped = PeerArena::map(parent, name);
    if (!mapped || (*mapped)->at(offset, kPageBytes)[7] != std::byte{1}) _exit(1);
    if (write(back[1], &word, 1) != 1 || read(turn[0], &word, 1) != 1) _exit(2);
    _exit((*mapped)->at(offset, kPageBytes)[7] == std::byte{2} && *PeerArena::map(parent, name) == *mapped ? 0 : 3);
  }
  ASSERT_EQ(read(back[0], &word, 1), 1);
  memory[7] = std::byte{2};
  ASSERT_EQ(write(turn[1], &word, 1), 1);
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  for (const int end : {turn[0], turn[1], back[0], back[1]}) close(end);
  give_back(memory);
}

TEST(PeerArena, has_nothing_beyond_its_end) {
  const ArenaName name = name_of_own();
  const auto mapped = PeerArena::map(getpid(), name);
  ASSERT_TRUE(mapped);
  EXPECT_NE((*mapped)->at(name.bytes - 10, 10), nullptr);
  EXPECT_EQ((*mapped)->at(name.bytes - 10, 11), nullptr);
  EXPECT_EQ((*mapped)->at(UINT64_MAX - 5, 10), nullptr);
}

TEST(PeerArena, that_is_not_what_the_peer_said_is_refused) {
  const ArenaName name = name_of_own();
  const pid_t parent = getpid();
  EXPECT_TRUE(is_content_in_a_child([&] {
    const auto is_refused = [&](auto change) {
      ArenaName wrong = name;
      change(wrong);
      const auto mapped = PeerArena::map(parent, wrong);
      return !mapped && mapped.error().code == fcclSystemError;
    };
    return is_refused([](ArenaName& n) { n.id[1] ^= 1; }) && is_refused([](ArenaName& n) { n.bytes -= kPageBytes; }) &&
           is_refused([](ArenaName& n) { n.bytes = 0; }) && is_refused([](ArenaName& n) { n.descriptor = 0; }) &&
           is_refused([](ArenaName& n) { n.descriptor = -1; }) && PeerArena::map(parent, name);
  }));
}

TEST(PeerArena, of_memory_that_could_shrink_is_refused) {
  const int file = memfd_create("unsealed", MFD_ALLOW_SEALING);
  ASSERT_EQ(ftruncate(file, static_cast<long>(kMiB)), 0);
  const auto mapped = PeerArena::map(getpid(), {file, {0, 0}, kMiB});
  ASSERT_FALSE(mapped);
  EXPECT_NE(mapped.error().message.find("is not sealed memory"), std::string::npos) << mapped.error().message;
  close(file);
}

}  // namespace
}  // namespace fccl::core
