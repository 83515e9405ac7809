// The processes of a run: the launcher library through which they meet, and the functions of it that the perf binaries need.
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

// How this process was started, according to the environment.
struct LaunchChoice {
  std::string mpi;               // "openmpi", "mpich", "intelmpi", "local", "network", or empty: one process
  std::optional<int> processes;  // expected number of processes; none if the environment does not say
  std::string place = {};        // place of this process, if it is "local" or "network"
  std::string new_file = {};     // file in which "local" processes started by srun meet; they make and remove it
  std::string instead = {};      // library to use if that of `mpi` was not built
};

// Refuses environments that would give several worlds of one process each.
Result<LaunchChoice> choose_launch(const Environment& environment);

// This process among the processes of the run. The main thread makes and destroys it, and it outlives every other user; only
// the main thread calls its functions, except `abort`, which any thread may call.
class Processes {
 public:
  // Loads the chosen launcher library, if any, and meets the other processes.
  static Result<Processes> start(const LaunchChoice& choice, bool many_threads);
  Processes(Processes&& other) noexcept;
  ~Processes();

  int process() const { return process_; }
  int processes() const { return processes_; }
  // Returns null for a single process.
  const FcclLauncher* launcher() const { return launcher_; }

  void barrier() const;
  // Returns every process's value, in order.
  template <class T>
  std::vector<T> all_gather(const T& own) const {
    std::vector<T> all(static_cast<std::size_t>(processes_), own);
    if (launcher_) launcher_->all_gather(&own, sizeof own, all.data());
    return all;
  }
  // Returns every process's `own`, which has one length everywhere, one after another.
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
