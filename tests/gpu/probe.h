// Probe: the cases that answer one question about the GPU, and the main function that runs them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "team.h"

namespace fccl::gpu {

// Exit statuses of a probe; ./dev gpu reads them.
inline constexpr int kAllWell = 0;
inline constexpr int kSomethingWrong = 1;
inline constexpr int kWrongUse = 2;
inline constexpr int kNoGpu = 77;

// One case: `part` runs in each of `ranks` new processes. A case that fails takes no other with it.
struct Case {
  std::string name;
  int ranks = 1;
  double seconds = 20;  // within which all ranks return, opening the GPU included
  std::function<void(Rank&)> part = {};
};

// The facts that the cases of a probe share.
struct Question {
  int number = 0;
  // In a process of its own, since one that has called CUDA may not fork ranks; throws Unsupported where there is no GPU.
  std::function<void()> look_for_gpu;
  // In each rank, before its part.
  std::function<void()> open = {};
};

// Prints one row of JSON per line. The words of the command line: none, or --seconds N, after which no case is begun and the
// running one is ended.
int run_probe(const Question& question, const std::vector<Case>& cases, int argc, char** argv);

}  // namespace fccl::gpu
