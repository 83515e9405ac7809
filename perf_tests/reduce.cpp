// Measures and checks Reduce: the sum over ranks on the root.
#include "runner.h"

namespace fccl::perf::reduce {
namespace {

Layout layout(std::size_t count, Place place) {
  return {.count = count, .send_count = count, .recv_count = place.rank == place.root ? count : 0};
}

Result<void> start(Communicator& communicator, const Operation& operation) {
  return communicator.reduce(operation.send, operation.recv, operation.op, operation.root, operation.stream);
}

Origin origin(const Layout&, Place, std::size_t) { return {Origin::kEveryRank, 0}; }

}  // namespace

extern const Collective kMeasured{.collective = fcclCollReduce,
                                  .reduces = true,
                                  .rooted = true,
                                  .has_blocks = false,
                                  .layout = layout,
                                  .start = start,
                                  .origin = origin,
                                  .bus_factor = every_byte_once};

}  // namespace fccl::perf::reduce
