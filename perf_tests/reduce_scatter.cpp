// Measures and checks ReduceScatter: block r of the sum over ranks on rank r.
#include "runner.h"

namespace fccl::perf::reduce_scatter {
namespace {

Layout layout(std::size_t count, Place place) {
  return {.count = count,
          .send_count = count * static_cast<std::size_t>(place.ranks),
          .recv_count = count,
          .in_place_recv = count * static_cast<std::size_t>(place.rank)};
}

Result<void> start(Communicator& communicator, const Operation& operation) {
  return communicator.reduce_scatter(operation.send, operation.recv, operation.op, operation.stream);
}

Origin origin(const Layout& layout, Place place, std::size_t) {
  return {Origin::kEveryRank, layout.count * static_cast<std::size_t>(place.rank)};
}

}  // namespace

extern const Collective kMeasured{.collective = fcclCollReduceScatter,
                                  .reduces = true,
                                  .rooted = false,
                                  .has_blocks = true,
                                  .layout = layout,
                                  .start = start,
                                  .origin = origin,
                                  .bus_factor = all_but_own_block};

}  // namespace fccl::perf::reduce_scatter
