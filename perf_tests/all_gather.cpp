// Measures and checks AllGather: the blocks of all ranks, one after another, on every rank.
#include "runner.h"

namespace fccl::perf::all_gather {
namespace {

Layout layout(std::size_t count, Place place) {
  return {.count = count,
          .send_count = count,
          .recv_count = count * static_cast<std::size_t>(place.ranks),
          .in_place_send = count * static_cast<std::size_t>(place.rank)};
}

Result<void> start(Communicator& communicator, const Operation& operation) {
  return communicator.all_gather(operation.send, operation.recv, operation.stream);
}

Origin origin(const Layout&, Place, std::size_t block) { return {static_cast<int>(block), 0}; }

}  // namespace

extern const Collective kMeasured{.collective = fcclCollAllGather,
                                  .reduces = false,
                                  .rooted = false,
                                  .has_blocks = true,
                                  .layout = layout,
                                  .start = start,
                                  .origin = origin,
                                  .bus_factor = all_but_own_block};

}  // namespace fccl::perf::all_gather
