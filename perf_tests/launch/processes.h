// The processes of a run: which launcher library they meet through, and what the perf binaries need of it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "environment.h"
#include "exit_code.h"
#include "fccl/fccl.hpp"
#include "launch/launcher.h"

namespace fccl::perf {

// How this process was started, as the environment tells.
struct LaunchChoice {
  std::string mpi;               // "openmpi", "mpich", "intelmpi", "local", or empty: one process
  std::optional<int> processes;  // how many there must be; none where the environment does not say
  std::string place = {};        // of this process, if it is "local"
  std::string new_file = {};     // in which "local" processes meet that srun started; they make and remove it
  std::string instead = {};      // the library that serves where that of `mpi` was not built
};

// Refuses what would end as several worlds of one process each.
Result<LaunchChoice> choose_launch(const Environment& environment);

// This process among those of the run. Made and destroyed by the main thread, outlives every other user; all functions are for
// the main thread, except `abort`, which any thread may call.
class Processes {
 public:
  // Loads the chosen launcher library, if any, and meets the other processes.
  static Result<Processes> start(const LaunchChoice& choice, bool many_threads);
  Processes(Processes&& other) noexcept;
  ~Processes();

  int process() const { return process_; }
  int processes() const { return processes_; }
  // Null for a process that is alone.
  const FcclLauncher* launcher() const { return launcher_; }

  void barrier() const;
  // Every process's value, in order.
  template <class T>
  std::vector<T> all_gather(const T& own) const {
    std::vector<T> all(static_cast<std::size_t>(processes_), own);
    if (launcher_) launcher_->all_gather(&own, sizeof own, all.data());
    return all;
  }
  // Every process's `own`, of the same length everywhere, one after another.
  template <class T>
  std::vector<T> all_gather(const std::vector<T>& own) const {
    if (!launcher_) return own;
    std::vector<T> all(static_cast<std::size_t>(processes_) * own.size());
    launcher_->all_gather(own.data(), own.size() * sizeof(T), all.data());
    return all;
  }
  // Ends every process with this status.
  [[noreturn]] void abort(ExitCode code) const;

 private:
  Processes(const FcclLauncher* launcher, int process, int processes)
      : launcher_(launcher), process_(process), processes_(processes) {}

  const FcclLauncher* launcher_;
  int process_;
  int processes_;
};

}  // namespace fccl::perf
