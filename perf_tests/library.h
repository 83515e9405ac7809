// What is measured: FCCL, or the MPI that started the run, called in the same way on the same buffers; or what a host allows.
#pragma once

#include <memory>

#include "arguments.h"
#include "collective.h"
#include "elements.h"
#include "launch/launcher.h"
#include "memory.h"

namespace fccl::perf {

class Gpu;
struct Run;

// One rank's handle of a library. Made, used and destroyed by one thread. After the first failure it is of no use.
class Library {
 public:
  Library() = default;
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  virtual ~Library() = default;

  // What the calls that follow reduce with.
  virtual Result<void> choose(const ElementType& type, const Operator& op) = 0;
  // The layout as this library wants it.
  virtual Layout fit(const Collective&, const Layout& layout) const { return layout; }
  // What it took to join; of FCCL alone.
  virtual Result<fcclInitCost_t> init_cost() const { return Error{fcclInvalidUsage, "only FCCL tells what its init took"}; }
  virtual Result<void> start(const Collective& collective, const Operation& operation) = 0;
  // Waits for all calls that were started.
  virtual Result<void> finish() = 0;
};

// Joins as the rank of `thread`; all ranks do so at the same time. For calls on the memory of `gpu`, which outlives the
// library; on the host's if it is null.
Result<std::unique_ptr<Library>> join_fccl(const Run& run, int thread, const Gpu* gpu);
// `launcher` is not null.
std::unique_ptr<Library> use_mpi(const FcclLauncher* launcher);

// Whether the MPI behind `launcher` has the collective for this type and operator.
bool mpi_has(const FcclLauncher& launcher, const Collective& collective, const ElementType& type, const Operator& op);

// A rank's bare loops, and the memory that its calls are on, which outlives them.
struct Limit {
  std::unique_ptr<Memory> memory;
  std::unique_ptr<Library> library;
};

// As the rank of `thread`; all ranks do so at the same time.
Result<Limit> join_limit(const Run& run, int thread);
// Whether there is a loop for it.
bool limit_has(const Collective& collective, const ElementType& type, const Operator& op);

}  // namespace fccl::perf
