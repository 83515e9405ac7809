// Measures and checks Scatter: block r of the root's buffer on rank r.
#include "runner.h"

namespace fccl::perf::scatter {
namespace {

Layout layout(std::size_t count, Place place) {
  return {.count = count,
          .send_count = place.rank == place.root ? count * static_cast<std::size_t>(place.ranks) : 0,
          .recv_count = count,
          .in_place_recv = count * static_cast<std::size_t>(place.rank)};
}

Result<void> start(Communicator& communicator, const Operation& operation) {
  return communicator.scatter(operation.send, operation.recv, operation.root, operation.stream);
}

Origin origin(const Layout& layout, Place place, std::size_t) {
  return {place.root, layout.count * static_cast<std::size_t>(place.rank)};
}

}  // namespace

extern const Collective kMeasured{.collective = fcclCollScatter,
                                  .reduces = false,
                                  .rooted = true,
                                  .has_blocks = true,
                                  .layout = layout,
                                  .start = start,
                                  .origin = origin,
                                  .bus_factor = all_but_own_block};

}  // namespace fccl::perf::scatter
