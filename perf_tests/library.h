// The measured library: FCCL, or the MPI that started the run, called in the same way on the same buffers; or loops that show
// the limit of a host.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "arguments.h"
#include "collective.h"
#include "elements.h"
#include "launch/launcher.h"
#include "memory.h"

namespace fccl::perf {

class Gpu;
struct Run;

// Counts the calls of a rank so far; empty if the library does not tell.
struct Traffic {
  std::vector<std::uint64_t> calls{};  // by path, as fcclMetricsPathName numbers them
  std::uint64_t copied = 0;            // bytes of calls on CUDA memory that the processor has read
};

// One rank's handle of a library. One thread makes, uses and destroys it. After its first failure it cannot be used.
class Library {
 public:
  Library() = default;
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  virtual ~Library() = default;

  // Sets the type and operator of the following calls.
  virtual Result<void> choose(const ElementType& type, const Operator& op) = 0;
  // Returns the layout as this library needs it.
  virtual Layout fit(const Collective&, const Layout& layout) const { return layout; }
  // Returns the cost of joining; only FCCL knows it.
  virtual Result<fcclInitCost_t> init_cost() const { return Error{fcclInvalidUsage, "only FCCL tells what its init took"}; }
  virtual Result<Traffic> traffic(const Collective&) const { return Traffic{}; }
  virtual Result<void> start(const Collective& collective, const Operation& operation) = 0;
  // Waits for all calls that were started.
  virtual Result<void> finish() = 0;
};

// Joins as the rank of `thread`; all ranks do so at the same time. Calls use the memory of `gpu`, which outlives the library;
// the host's if it is null.
Result<std::unique_ptr<Library>> join_fccl(const Run& run, int thread, const Gpu* gpu);
// `launcher` must not be null.
std::unique_ptr<Library> use_mpi(const FcclLauncher* launcher);

// True if the MPI behind `launcher` has the collective for this type and operator.
bool mpi_has(const FcclLauncher& launcher, const Collective& collective, const ElementType& type, const Operator& op);

// A rank's bare loops, and the memory that its calls use, which outlives them.
struct Limit {
  std::unique_ptr<Memory> memory;
  std::unique_ptr<Library> library;
};

// Joins as the rank of `thread`; all ranks do so at the same time.
Result<Limit> join_limit(const Run& run, int thread);
// True if there is a loop for it.
bool limit_has(const Collective& collective, const ElementType& type, const Operator& op);

}  // namespace fccl::perf
