// The ranks of a run, which are the threads of its processes: how they meet and put numbers together.
#pragma once

#include <barrier>
#include <cstddef>
#include <vector>

#include "launch/processes.h"
#include "launch/split.h"

namespace fccl::perf {

// What a rank's memory belongs to: a GPU, or the processor.
struct DeviceInfo {
  int ordinal = 0;  // among the GPUs that the process sees
  unsigned domain = 0;
  unsigned bus = 0;
  unsigned slot = 0;
  std::size_t bytes = 0;  // of its memory; zero for the processor
  char name[64] = "";
};

// Who runs one rank and where; plain bytes, so that they can be gathered.
struct RankInfo {
  int rank;
  int group;
  int process_id;
  char host[64];
  DeviceInfo device = {};
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
  // `devices`: one for each of this process's threads.
  std::vector<RankInfo> introduce(const std::vector<DeviceInfo>& devices) const;

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

// The processor that the ranks of this process run on.
DeviceInfo this_processor();
// The most of these ranks that share one GPU; 0 where no rank has one.
int ranks_per_gpu(const std::vector<RankInfo>& ranks);
// What the host can lend to each of `ranks` ranks on it without pushing anything else out: half of its memory in equal parts.
std::size_t memory_per_rank(int ranks);
// Bytes of memory that this process occupies now.
std::size_t resident_bytes();

}  // namespace fccl::perf
