// Measures and checks AlltoAll: block r of every rank's buffer on rank r, in the order of the ranks.
#include "runner.h"

namespace fccl::perf::alltoall {
namespace {

Layout layout(std::size_t count, Place place) {
  const std::size_t all = count * static_cast<std::size_t>(place.ranks);
  return {.count = count, .send_count = all, .recv_count = all};
}

Result<void> start(Communicator& communicator, const Operation& operation) {
  return communicator.all_to_all(operation.send, operation.recv, operation.stream);
}

Origin origin(const Layout& layout, Place place, std::size_t block) {
  return {static_cast<int>(block), layout.count * static_cast<std::size_t>(place.rank)};
}

}  // namespace

extern const Collective kMeasured{.collective = fcclCollAlltoAll,
                                  .reduces = false,
                                  .rooted = false,
                                  .has_blocks = true,
                                  .works_in_place = false,
                                  .layout = layout,
                                  .start = start,
                                  .origin = origin,
                                  .bus_factor = all_but_own_block};

}  // namespace fccl::perf::alltoall
