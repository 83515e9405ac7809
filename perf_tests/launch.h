// The ranks of a run: the processes that mpirun started, each with some threads; how they meet and put numbers together.
#pragma once

#include <barrier>
#include <cstddef>
#include <vector>

#include "exit_code.h"
#include "report.h"

namespace fccl::perf {

// MPI while the program runs; one per process, made and destroyed by the main thread. Without mpirun there is one process.
class Mpi {
 public:
  Mpi(int& argc, char**& argv);
  ~Mpi();
  Mpi(const Mpi&) = delete;
  Mpi& operator=(const Mpi&) = delete;

  int process() const { return process_; }
  int processes() const { return processes_; }
  // Overwrites `id` with the first process's.
  void share(fcclUniqueId& id) const;
  // Ends every process with this status. Any thread may call it.
  [[noreturn]] void abort(ExitCode code) const;

 private:
  int process_ = 0;
  int processes_ = 1;
};

enum class Combine { first, mean, minimum, maximum, sum };

// All ranks: rank = process * threads + thread. Shared by the threads of a process; every thread of every process makes the
// same calls in the same order, and thread 0 speaks to MPI for the rest.
class Team {
 public:
  Team(const Mpi& mpi, int threads);

  int ranks() const { return mpi_.processes() * threads_; }
  int rank(int thread) const { return mpi_.process() * threads_ + thread; }
  const Mpi& mpi() const { return mpi_; }

  void barrier(int thread);
  double combine(int thread, double value, Combine how);
  // Every rank in order, on the first process; elsewhere only its own. The main thread's call.
  std::vector<RankInfo> introduce() const;

 private:
  const Mpi& mpi_;
  int threads_;
  std::barrier<> meet_;
  std::vector<double> values_;
  double combined_ = 0;
};

// What the host can lend to each of `ranks` ranks on it without pushing anything else out: half of its memory in equal parts.
std::size_t memory_per_rank(int ranks);

}  // namespace fccl::perf
