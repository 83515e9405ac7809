// The ranks of a run, which are the threads of its processes: how they meet and put numbers together.
#pragma once

#include <barrier>
#include <cstddef>
#include <vector>

#include "launch/processes.h"
#include "launch/split.h"

namespace fccl::perf {

// Who runs one rank and where; plain bytes, so that they can be gathered.
struct RankInfo {
  int rank;
  int group;
  int process_id;
  char host[64];
  char processor[64];
};

enum class Combine { first, mean, minimum, maximum, sum };

// One rank's number, and what is to be made of all ranks'.
struct Part {
  double value;
  Combine how;
};

// All ranks: rank = process * threads + thread, counted inside the group. Shared by the threads of a process; every thread of
// every process of all groups makes the same calls in the same order, and thread 0 speaks to the other processes for the rest.
class Team {
 public:
  Team(const Processes& processes, const Group& group, int threads);

  int ranks() const { return group_.processes * threads_; }
  int rank(int thread) const { return group_.index * threads_ + thread; }
  const Processes& processes() const { return processes_; }

  void barrier(int thread);
  // What all ranks' parts make, in one meeting; the same on every thread.
  std::vector<double> combine(int thread, const std::vector<Part>& parts);
  // Per process, the greatest of its threads' values in each place; all vectors have one length. The same on every thread.
  const std::vector<std::vector<double>>& process_maxima(int thread, const std::vector<double>& values);

  // The main thread's calls, before there are others.
  // The id that the first process of this group made with `make`.
  Result<UniqueId> share_id() const;
  std::vector<RankInfo> introduce() const;

 private:
  // Per process, what its threads' values in each place come to; right on thread 0.
  std::vector<std::vector<double>> gather(int thread, const std::vector<double>& values, const std::vector<Combine>& how);

  const Processes& processes_;
  const Group group_;
  const int threads_;
  std::barrier<> meet_;
  std::vector<std::vector<double>> series_;  // one per thread
  std::vector<std::vector<double>> maxima_;
  std::vector<double> combined_;
};

// What the host can lend to each of `ranks` ranks on it without pushing anything else out: half of its memory in equal parts.
std::size_t memory_per_rank(int ranks);
// Bytes of memory that this process occupies now.
std::size_t resident_bytes();

}  // namespace fccl::perf
