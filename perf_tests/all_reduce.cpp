// Measures and checks AllReduce: the sum over ranks on every rank.
#include "runner.h"

namespace fccl::perf::all_reduce {
namespace {

Layout layout(std::size_t count, Place) { return {.count = count, .send_count = count, .recv_count = count}; }

Result<void> start(Communicator& communicator, const Operation& operation) {
  return communicator.all_reduce(operation.send, operation.recv, operation.op, operation.stream);
}

Origin origin(const Layout&, Place, std::size_t) { return {Origin::kEveryRank, 0}; }

double bus_factor(int ranks) { return 2.0 * (ranks - 1.0) / ranks; }

}  // namespace

extern const Collective kMeasured{.collective = fcclCollAllReduce,
                                  .reduces = true,
                                  .rooted = false,
                                  .has_blocks = false,
                                  .layout = layout,
                                  .start = start,
                                  .origin = origin,
                                  .bus_factor = bus_factor};

}  // namespace fccl::perf::all_reduce
