// Measures and checks Gather: the blocks of all ranks, one after another, on the root.
#include "runner.h"

namespace fccl::perf::gather {
namespace {

Layout layout(std::size_t count, Place place) {
  return {.count = count,
          .send_count = count,
          .recv_count = place.rank == place.root ? count * static_cast<std::size_t>(place.ranks) : 0,
          .in_place_send = count * static_cast<std::size_t>(place.rank)};
}

Result<void> start(Communicator& communicator, const Operation& operation) {
  return communicator.gather(operation.send, operation.recv, operation.root, operation.stream);
}

Origin origin(const Layout&, Place, std::size_t block) { return {static_cast<int>(block), 0}; }

}  // namespace

extern const Collective kMeasured{.collective = fcclCollGather,
                                  .reduces = false,
                                  .rooted = true,
                                  .has_blocks = true,
                                  .layout = layout,
                                  .start = start,
                                  .origin = origin,
                                  .bus_factor = all_but_own_block};

}  // namespace fccl::perf::gather
