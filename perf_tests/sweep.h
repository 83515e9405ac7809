// One rank's part of a run: its library, its memory, and the loop over types, operators, roots and sizes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "gpu/gpu.h"
#include "meter.h"
#include "run.h"
#include "uneven.h"

namespace fccl::perf {

// Bytes of the process's memory that each step took, in this order: joining, buffers, calls.
struct MemoryUse {
  double joining = 0;
  double buffers = 0;
  double calls = 0;
};

// One thread makes and uses it. Ends all processes of the run when a call of the library fails.
class Sweep {
 public:
  Sweep(const Run& run, int thread);

  // Runs everything; returns the number of checks of the whole run that saw a wrong element.
  std::uint64_t operator()();
  // Returns the memory that the process has taken since this sweep was made; valid on thread 0.
  const MemoryUse& memory_use() const { return memory_use_; }
  // Describes the process's arena while the buffers exist.
  std::string arena_text() const;
  // Describes the slots that the process's communicators of CUDA memory had when all calls were done.
  const std::string& slots_text() const { return slots_text_; }
  // Returns the costs of init, if they were asked for.
  const std::vector<std::string>& init_lines() const { return init_lines_; }

 private:
  void run_sizes(const Case& chosen, int root);
  void warm_up(const Case& chosen, int root);
  // Valid until the next one is made.
  Subject subject(const Case& chosen, int root, std::size_t bytes);
  void report(const Row& row);
  std::vector<std::string> describe_init();
  // Returns the bytes that the process has taken since the last call.
  double more_memory();

  const Run& run_;
  const int thread_;
  double resident_;
  MemoryUse memory_use_;
  std::vector<std::string> init_lines_;
  std::string slots_text_;
  std::unique_ptr<Gpu> gpu_;  // null if the buffers are in host memory
  std::unique_ptr<Memory> memory_;
  std::unique_ptr<Library> library_;
  std::unique_ptr<Meter> meter_;
  std::optional<Samples> samples_;  // samples of the current case, if it reduces
  UnevenCounts counts_;             // counts of the current subject, if its blocks have counts of their own
};

}  // namespace fccl::perf
