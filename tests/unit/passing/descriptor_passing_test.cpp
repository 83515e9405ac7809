// Tests of handing a descriptor from a leader to the ranks of its host.
#include "passing/descriptor_passing.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <list>
#include <numeric>

#include "sockets/socket.h"
#include "unit/bootstrap/joining.h"

namespace fccl::core {
namespace {

std::vector<Joined> joined_ranks(int nranks) {
  std::vector<Joined> all;
  for (Result<Joined>& result : join_all(requests_of(*open_bootstrap(on_interface("lo")), nranks)))
    all.push_back(std::move(*result));
  return all;
}

Result<void> send_descriptor(const Joined& joined, int fd, const std::vector<int>& ranks, const WaitLimit& limit) {
  return send_descriptors(joined, std::array{fd}, ranks, limit);
}

Result<Descriptor> receive_descriptor(const Joined& joined, int leader, const WaitLimit& limit) {
  auto received = receive_descriptors(joined, leader, 1, limit);
  if (!received) return fail(received.error());
  return std::move(received->front());
}

Descriptor shared_memory() { return Descriptor(::memfd_create("hand_out_test", MFD_CLOEXEC)); }

ino_t inode_of(const Descriptor& descriptor) {
  struct stat status{};
  EXPECT_EQ(::fstat(descriptor.get(), &status), 0);
  return status.st_ino;
}

// Rank 0 hands out, the others receive; their results by rank.
std::vector<Result<Descriptor>> receive_all(const std::vector<Joined>& ranks, const Descriptor& memory) {
  std::vector<Result<Descriptor>> received(ranks.size());
  std::vector<std::jthread> threads;
  for (size_t rank = 1; rank < ranks.size(); ++rank)
    threads.emplace_back([&, rank] { received[rank] = receive_descriptor(ranks[rank], 0, Deadline::after(5s)); });
  std::vector<int> others(ranks.size() - 1);
  std::iota(others.begin(), others.end(), 1);
  const Result<void> handed = send_descriptor(ranks[0], memory.get(), others, Deadline::after(5s));
  EXPECT_TRUE(handed) << handed.error().message;
  threads.clear();
  return received;
}

TEST(HandOut, every_rank_gets_the_same_memory) {
  const Census census;
  const std::vector<Joined> ranks = joined_ranks(8);
  const Descriptor memory = shared_memory();
  const std::vector<Result<Descriptor>> received = receive_all(ranks, memory);
  for (size_t rank = 1; rank < ranks.size(); ++rank) {
    ASSERT_TRUE(received[rank]) << received[rank].error().message;
    EXPECT_NE(received[rank]->get(), memory.get());
    EXPECT_EQ(inode_of(*received[rank]), inode_of(memory));
  }
}

TEST(HandOut, of_two_descriptors_keeps_their_order) {
  const Census census;
  const std::vector<Joined> ranks = joined_ranks(2);
  const Descriptor first = shared_memory(), second = shared_memory();
  Result<std::vector<Descriptor>> received;
  {
    const std::jthread other([&] { received = receive_descriptors(ranks[1], 0, 2, Deadline::after(5s)); });
    EXPECT_TRUE(send_descriptors(ranks[0], std::array{first.get(), second.get()}, {1}, Deadline::after(5s)));
  }
  ASSERT_TRUE(received) << received.error().message;
  ASSERT_EQ(received->size(), 2U);
  EXPECT_EQ(inode_of(received->front()), inode_of(first));
  EXPECT_EQ(inode_of(received->back()), inode_of(second));
}

TEST(HandOut, of_fewer_descriptors_than_are_expected_is_an_error) {
  const std::vector<Joined> ranks = joined_ranks(2);
  Result<std::vector<Descriptor>> received;
  {
    const std::jthread other([&] { received = receive_descriptors(ranks[1], 0, 2, Deadline::after(5s)); });
    EXPECT_TRUE(send_descriptor(ranks[0], shared_memory().get(), {1}, Deadline::after(5s)));
  }
  ASSERT_FALSE(received);
  EXPECT_EQ(received.error().code, fcclInternalError);
}

TEST(HandOut, strangers_at_the_door_are_ignored) {
  const Census census;
  const std::vector<Joined> ranks = joined_ranks(3);
  std::list<Descriptor> strangers;
  for (int i = 0; i < 3; ++i) {
    strangers.push_back(std::move(connect_local(ranks[0].members[0].listener, 1ms).socket));
    write_some(strangers.back().get(), i == 0 ? "" : "GET / HTTP/1.1\r\n");
    if (i == 1) write_some(strangers.back().get(), "x", std::array{0});
  }
  for (const Result<Descriptor>& result : receive_all(ranks, shared_memory())) EXPECT_TRUE(result);
}

TEST(HandOut, a_rank_that_never_comes_is_named_at_the_deadline) {
  const std::vector<Joined> ranks = joined_ranks(3);
  const Result<void> handed = send_descriptor(ranks[0], 0, {1, 2}, Deadline::after(50ms));
  ASSERT_FALSE(handed);
  EXPECT_EQ(handed.error().code, fcclTimeout);
  EXPECT_EQ(handed.error().message.find("ranks 1-2 of this host"), 0U) << handed.error().message;
}

TEST(HandOut, a_leader_that_does_not_hand_out_is_named_at_the_deadline) {
  const std::vector<Joined> ranks = joined_ranks(2);
  const Result<Descriptor> received = receive_descriptor(ranks[1], 0, Deadline::after(50ms));
  ASSERT_FALSE(received);
  EXPECT_EQ(received.error().code, fcclTimeout);
  EXPECT_EQ(received.error().message.find("rank 0 (pid"), 0U) << received.error().message;
}

TEST(HandOut, a_leader_that_left_is_an_error_at_once) {
  std::vector<Joined> ranks = joined_ranks(2);
  ranks[0].listener.close();
  const Result<Descriptor> received = receive_descriptor(ranks[1], 0, Deadline::after(5s));
  ASSERT_FALSE(received);
  EXPECT_EQ(received.error().code, fcclRemoteError);
  EXPECT_EQ(received.error().message.find("rank 0 (pid"), 0U);
}

// Says that the hand-out is no longer wanted, once some time has passed.
CancelCheck wanted_for(std::chrono::milliseconds span) {
  return [until = Deadline::after(span)]() -> Result<void> {
    if (until.passed()) return fail(fcclRemoteError, "rank 7 of the parent died");
    return {};
  };
}

TEST(HandOut, a_leader_stops_waiting_with_the_reason_why_it_is_no_longer_wanted) {
  const std::vector<Joined> ranks = joined_ranks(2);
  const auto begin = Clock::now();
  const Result<void> handed = send_descriptor(ranks[0], 0, {1}, {Deadline::after(10s), wanted_for(50ms)});
  ASSERT_FALSE(handed);
  EXPECT_EQ(handed.error().message, "rank 7 of the parent died");
  EXPECT_LT(Clock::now() - begin, 2s);
}

TEST(HandOut, a_rank_stops_waiting_for_its_leader_with_the_reason_why_it_is_no_longer_wanted) {
  const std::vector<Joined> ranks = joined_ranks(2);
  const auto begin = Clock::now();
  const Result<Descriptor> received = receive_descriptor(ranks[1], 0, {Deadline::after(10s), wanted_for(50ms)});
  ASSERT_FALSE(received);
  EXPECT_EQ(received.error().message, "rank 7 of the parent died");
  EXPECT_LT(Clock::now() - begin, 2s);
}

TEST(HandOut, a_rank_before_a_full_door_stops_waiting_too) {
  const std::vector<Joined> ranks = joined_ranks(2);
  std::list<Descriptor> line;
  while (Descriptor next = std::move(connect_local(ranks[0].members[0].listener, 1ms).socket)) line.push_back(std::move(next));
  const Result<Descriptor> received = receive_descriptor(ranks[1], 0, {Deadline::after(10s), wanted_for(50ms)});
  ASSERT_FALSE(received);
  EXPECT_EQ(received.error().message, "rank 7 of the parent died");
}

// Two ranks, of which `rank` is a child process that dies once it has joined; the other one, and the child's pid.
struct Bereaved {
  explicit Bereaved(int dead_rank) {
    const UniqueId id = *open_bootstrap(on_interface("lo"));
    child = ::fork();
    if (child == 0) {
      const Result<Joined> joined = join(request_of(id, dead_rank, 2), Deadline::after(5s));
      ::usleep(100000);
      ::_exit(0);
    }
    survivor = std::move(*join(request_of(id, 1 - dead_rank, 2), Deadline::after(5s)));
  }
  ~Bereaved() { ::waitpid(child, nullptr, 0); }

  pid_t child = 0;
  Joined survivor;
};

TEST(HandOut, a_rank_that_died_before_it_came_is_named_to_the_leader) {
  const Bereaved bereaved(1);
  const Result<void> handed = send_descriptor(bereaved.survivor, 0, {1}, Deadline::after(5s));
  ASSERT_FALSE(handed);
  EXPECT_EQ(handed.error().code, fcclRemoteError);
  EXPECT_EQ(handed.error().message.find("rank 1 (pid " + std::to_string(bereaved.child)), 0U) << handed.error().message;
}

TEST(HandOut, a_leader_that_died_is_named_to_who_waits_for_it) {
  const Bereaved bereaved(0);
  const Result<Descriptor> received = receive_descriptor(bereaved.survivor, 0, Deadline::after(5s));
  ASSERT_FALSE(received);
  EXPECT_EQ(received.error().code, fcclRemoteError);
  EXPECT_EQ(received.error().message.find("rank 0 (pid " + std::to_string(bereaved.child)), 0U) << received.error().message;
}

}  // namespace
}  // namespace fccl::core
