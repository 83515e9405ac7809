// Cross-memory attach where it is allowed, forbidden from the start, and forbidden later on.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>
#include <thread>

#include "processes/size.h"
#include "processes/trial.h"

namespace fccl::core::testing {
namespace {

// From now on the kernel refuses this thread to read another one's memory, as many containers do.
void forbid_attach() {
  sock_filter program[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                           BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
                           BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog filter{4, program};
  ASSERT_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  ASSERT_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter), 0);
}

void try_moves(const Seat& seat, fcclComm_t comm, fcclStream_t stream = nullptr) {
  int iteration = 0;
  for (const size_t bytes : {size_t{5000}, size_t{40'000}, size_t{3} << 20, size_t{40'001}})
    for (const fcclColl_t collective : {fcclCollAllGather, fcclCollAlltoAll})
      for (const bool in_place : {true, false})
        if (collective == fcclCollAllGather || !in_place)
          EXPECT_EQ(try_collective({.collective = collective,
                                    .dtype = fcclUint8,
                                    .count = bytes,
                                    .in_place = in_place,
                                    .iteration = ++iteration},
                                   seat.rank, seat.ranks, comm, stream),
                    "");
}

class Attaching : public ::testing::TestWithParam<Size> {
  const Setting attach_{"FCCL_CROSS_MEMORY_ATTACH", "on"};
};

TEST_P(Attaching, that_is_forbidden_to_one_rank_gives_way_to_the_ring) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    if (seat.rank == seat.ranks - 1) forbid_attach();
    const Comm comm(seat);
    try_moves(seat, comm);
  });
}

TEST_P(Attaching, that_is_forbidden_to_one_rank_later_on_gives_way_to_the_ring) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat);
    try_moves(seat, comm);
    if (seat.rank == 0) forbid_attach();
    try_moves(seat, comm);
  });
}

TEST_P(Attaching, on_streams_gives_way_to_the_ring_where_that_is_faster_or_the_only_way) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    if (seat.rank == 0) forbid_attach();
    const Comm comm(seat);
    fcclStream_t stream = nullptr;
    ASSERT_TRUE(succeeded(fcclStreamCreate(&stream)));
    try_moves(seat, comm, stream);
    EXPECT_TRUE(succeeded(fcclStreamDestroy(stream)));
  });
}

TEST_P(Attaching, between_ranks_of_which_some_are_in_place_is_right) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat);
    int iteration = 0;
    for (const size_t bytes : {size_t{9000}, size_t{3} << 20})
      for (int placed = 0; placed <= seat.ranks; ++placed)
        EXPECT_EQ(try_collective({.collective = fcclCollAllGather,
                                  .dtype = fcclUint8,
                                  .count = bytes,
                                  .in_place = seat.rank < placed,
                                  .iteration = ++iteration},
                                 seat.rank, seat.ranks, comm),
                  "");
  });
}

INSTANTIATE_TEST_SUITE_P(As, Attaching, ::testing::ValuesIn(sizes(2, 3)), name_of_size);

TEST(AttachingTried, comes_to_the_same_answer_on_every_rank) {
  if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "ranks that outnumber the processors do not try it";
  const Setting level("FCCL_LOG", "info");
  ::testing::internal::CaptureStderr();
  run_ranks({.as = RanksAs::threads, .ranks = 2}, [](const Seat& seat) {
    const Comm comm(seat);
    try_moves(seat, comm);
  });
  const std::string log = ::testing::internal::GetCapturedStderr();
  const std::string begin = "an AlltoAll of 64 KiB for each of 2 ranks took ";
  const size_t first = log.find(begin), second = log.find(begin, first + 1);
  ASSERT_NE(second, std::string::npos) << log;
  EXPECT_EQ(log.substr(first, log.find('\n', first) - first), log.substr(second, log.find('\n', second) - second));
  EXPECT_EQ(log.find(begin, second + 1), std::string::npos) << log;
}

TEST(AttachingForbidden, is_told_to_the_log_once_by_each_rank_that_is_concerned) {
  const Setting level("FCCL_LOG", "info"), attach("FCCL_CROSS_MEMORY_ATTACH", "on");
  ::testing::internal::CaptureStderr();
  run_ranks({.as = RanksAs::threads, .ranks = 2}, [](const Seat& seat) {
    if (seat.rank == 1) forbid_attach();
    const Comm comm(seat);
    try_moves(seat, comm);
  });
  const std::string log = ::testing::internal::GetCapturedStderr();
  const std::string line = "rank 1 cannot read the memory of rank 0 (pid ";
  const size_t at = log.find(line);
  ASSERT_NE(at, std::string::npos) << log;
  EXPECT_NE(log.find("Operation not permitted", at), std::string::npos) << log;
  EXPECT_EQ(log.find(line, at + 1), std::string::npos) << log;
  EXPECT_EQ(log.find("rank 0 cannot read"), std::string::npos) << log;
}

}  // namespace
}  // namespace fccl::core::testing
