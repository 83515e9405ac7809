// Streams of a process that forks.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

#include "processes/test_stream.h"

namespace fccl::core::testing {
namespace {

// The text that a call failed with, "" if it did not fail as invalid usage.
std::string refusal(fcclResult_t result) { return result == fcclInvalidUsage ? fcclGetLastError(nullptr) : ""; }

// In a fork, with the parent's stream: what did not go as it should.
std::string misuse(fcclStream_t stream) {
  fcclUniqueId id;
  fcclComm_t own = nullptr;
  if (fcclGetUniqueId(&id) != fcclSuccess || fcclCommInitRank(&own, 1, id, 0) != fcclSuccess) return "no communicator";
  if (refusal(fcclStreamQuery(stream)).find("fork") == std::string::npos) return "query";
  if (refusal(fcclStreamSynchronize(stream)).find("fork") == std::string::npos) return "synchronize";
  if (refusal(fcclLaunchHostFunc(stream, [](void*) {}, nullptr)).find("fork") == std::string::npos) return "host function";
  if (refusal(fcclBarrier(own, stream)).find("fork") == std::string::npos) return "collective";
  // A call that was refused has taken no turn.
  if (fcclBarrier(own, nullptr) != fcclSuccess) return "collective without the stream";
  if (fcclCommDestroy(own) != fcclSuccess) return "destroy";
  return "";
}

TEST(StreamOfTheParent, is_refused_in_a_fork_by_every_call) {
  run_ranks({.as = RanksAs::processes, .ranks = 1, .limit = std::chrono::seconds(20)}, [](const Seat&) {
    const TestStream stream;
    // The worker's mutex is taken at the moment of the fork, or is not; both must do.
    for (int i = 0; i < 20; ++i) {
      for (int j = 0; j < 50; ++j) fcclLaunchHostFunc(stream, [](void*) {}, nullptr);
      const pid_t child = fork();
      if (child == 0) {
        alarm(10);
        const std::string wrong = misuse(stream);
        if (!wrong.empty()) fprintf(stderr, "in the fork: %s\n", wrong.c_str());
        _exit(wrong.empty() ? 0 : 1);
      }
      int status = -1;
      ASSERT_EQ(waitpid(child, &status, 0), child);
      ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    }
    EXPECT_TRUE(succeeded(fcclStreamSynchronize(stream)));
  });
}

}  // namespace
}  // namespace fccl::core::testing
