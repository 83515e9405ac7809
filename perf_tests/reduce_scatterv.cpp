// Measures and checks ReduceScatterV: the sum of every rank's blocks, each of a count of its own, on the rank it belongs to.
#include "runner.h"

namespace fccl::perf::reduce_scatterv {
namespace {

Layout layout(const UnevenCounts& counts, std::size_t count, Place place) {
  return {.count = count,
          .send_count = counts.all_sent(),
          .recv_count = counts.sent[static_cast<std::size_t>(place.rank)],
          .in_place_recv = counts.own,
          .uneven = &counts};
}

Result<void> start(Communicator& communicator, const Operation& operation) {
  return communicator.reduce_scatter_v(operation.send, operation.recv, operation.uneven->sent, operation.op, operation.stream);
}

Origin origin(const Layout& layout, Place, std::size_t) { return {Origin::kEveryRank, layout.uneven->begins[0]}; }

}  // namespace

extern const Collective kMeasured{.collective = fcclCollReduceScatterV,
                                  .reduces = true,
                                  .rooted = false,
                                  .has_blocks = true,
                                  .start = start,
                                  .origin = origin,
                                  .counts = scattered_counts,
                                  .uneven_layout = layout};

}  // namespace fccl::perf::reduce_scatterv
