// Measures and checks AllGatherV: every rank's block, of a count of its own, on every rank, in the order of the ranks.
#include "runner.h"

namespace fccl::perf::all_gatherv {
namespace {

Layout layout(const UnevenCounts& counts, std::size_t count, Place place) {
  return {.count = count,
          .send_count = counts.received[static_cast<std::size_t>(place.rank)],
          .recv_count = counts.all_received(),
          .in_place_send = counts.own,
          .uneven = &counts};
}

Result<void> start(Communicator& communicator, const Operation& operation) {
  return communicator.all_gather_v(operation.send, operation.recv, operation.uneven->received, {}, operation.stream);
}

Origin origin(const Layout&, Place, std::size_t block) { return {static_cast<int>(block), 0}; }

}  // namespace

extern const Collective kMeasured{.collective = fcclCollAllGatherV,
                                  .reduces = false,
                                  .rooted = false,
                                  .has_blocks = true,
                                  .start = start,
                                  .origin = origin,
                                  .counts = gathered_counts,
                                  .uneven_layout = layout};

}  // namespace fccl::perf::all_gatherv
