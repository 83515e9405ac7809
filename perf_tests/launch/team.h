// The ranks of a run, which are the threads of its processes: how they meet and combine numbers.
#pragma once

#include <barrier>
#include <cstddef>
#include <string>
#include <vector>

#include "launch/processes.h"
#include "launch/split.h"

namespace fccl::perf {

// The device of a rank's memory: a GPU, or the processor.
struct DeviceInfo {
  int ordinal = 0;  // among the GPUs that the process sees
  unsigned domain = 0;
  unsigned bus = 0;
  unsigned slot = 0;
  std::size_t bytes = 0;  // size of its memory; zero for the processor
  char name[64] = "";

  // Returns the PCI address of a GPU, or "cpu".
  std::string place() const;
};

// Says which process runs a rank, and where; plain bytes, so that they can be gathered.
struct RankInfo {
  int rank;
  int group;
  int process_id;
  char host[64];
  DeviceInfo device = {};
};

enum class Combine { first, mean, minimum, maximum, sum };

// One rank's number, and how those of all ranks are combined.
struct Part {
  double value;
  Combine how;
};

// All ranks: rank = process * threads + thread, counted inside the group. The threads of a process share it; every thread of
// every process of all groups makes the same calls in the same order, and thread 0 talks to the other processes for its
// process.
class Team {
 public:
  Team(const Processes& processes, const Group& group, int threads);

  int ranks() const { return group_.processes * threads_; }
  int rank(int thread) const { return group_.index * threads_ + thread; }
  const Processes& processes() const { return processes_; }

  void barrier(int thread);
  // Combines all ranks' parts in one meeting; the result is the same on every thread.
  std::vector<double> combine(int thread, const std::vector<Part>& parts);
  // Returns, by process, the greatest of its threads' values in each place; all vectors have one length. The result is the same
  // on every thread.
  const std::vector<std::vector<double>>& process_maxima(int thread, const std::vector<double>& values);

  // The main thread calls these before it starts other threads. share_id returns the id that the first process of this group
  // made.
  Result<UniqueId> share_id() const;
  // `devices`: one for each of this process's threads.
  std::vector<RankInfo> introduce(const std::vector<DeviceInfo>& devices) const;

 private:
  // Combines, by process, its threads' values in each place; valid on thread 0.
  std::vector<std::vector<double>> gather(int thread, const std::vector<double>& values, const std::vector<Combine>& how);

  const Processes& processes_;
  const Group group_;
  const int threads_;
  std::barrier<> meet_;
  std::vector<std::vector<double>> series_;  // one per thread
  std::vector<std::vector<double>> maxima_;
  std::vector<double> combined_;
};

// Describes the processor that the ranks of this process run on.
DeviceInfo this_processor();
// Returns the largest number of these ranks that share one GPU; 0 if no rank has one.
int ranks_per_gpu(const std::vector<RankInfo>& ranks);
// Returns the memory that the host can lend to each of its `ranks` ranks without displacing anything else: half of its memory
// in equal parts.
std::size_t memory_per_rank(int ranks);
// Returns the bytes of memory that this process occupies now.
std::size_t resident_bytes();

}  // namespace fccl::perf
