// The threads of a rank that has peers on other hosts: what becomes of one that cannot be had, and of signals.
#include <algorithm>
#include <optional>
#include <vector>

#include "processes/hosts.h"
#include "processes/no_threads.h"
#include "processes/test_stream.h"
#include "processes/threads.h"

namespace fccl::core::testing {
namespace {

TEST(HostThreads, that_cannot_be_had_end_init_on_every_rank_with_the_reason) {
  run_ranks({.as = RanksAs::processes, .ranks = 2, .host_of = {0, 1}}, [](const Seat& seat) {
    const fcclUniqueId id = agree_on_id(seat);
    std::optional<NoThreads> here;
    if (seat.rank == 1) here.emplace();
    expect_no_communicator(seat, id, fcclSystemError, {"cannot start fccl-progress", "ulimit -u"});
  });
}

TEST(HostThreads, leave_every_signal_to_the_application) {
  run_ranks({.as = RanksAs::processes, .ranks = 2, .host_of = {0, 1}}, [](const Seat& seat) {
    const Comm comm(seat);
    const TestStream stream;
    const std::vector<ThreadOfProcess> threads = threads_of_process();
    for (const char* name : {"fccl-worker", "fccl-progress", "fccl-host-link"})
      EXPECT_EQ(std::ranges::count(threads, name, &ThreadOfProcess::name), 1) << name << " on rank " << seat.rank;
    for (const ThreadOfProcess& thread : threads)
      if (thread.name.starts_with("fccl-")) {
        EXPECT_EQ(thread.blocked & signals_of_application(), signals_of_application()) << thread.name;
      }
    EXPECT_TRUE(succeeded(fcclBarrier(comm, nullptr)));
  });
}

}  // namespace
}  // namespace fccl::core::testing
