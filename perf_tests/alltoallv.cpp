// Measures and checks AlltoAllV: block r of every rank's buffer on rank r, where each two ranks have a count of their own.
#include "runner.h"

namespace fccl::perf::alltoallv {
namespace {

Layout layout(const UnevenCounts& counts, std::size_t count, Place) {
  return {.count = count, .send_count = counts.all_sent(), .recv_count = counts.all_received(), .uneven = &counts};
}

Result<void> start(Communicator& communicator, const Operation& operation) {
  return communicator.all_to_all_v({operation.send, operation.uneven->sent}, {operation.recv, operation.uneven->received},
                                   operation.stream);
}

Origin origin(const Layout& layout, Place, std::size_t block) {
  return {static_cast<int>(block), layout.uneven->begins[block]};
}

}  // namespace

extern const Collective kMeasured{.collective = fcclCollAlltoAllV,
                                  .reduces = false,
                                  .rooted = false,
                                  .has_blocks = true,
                                  .works_in_place = false,
                                  .start = start,
                                  .origin = origin,
                                  .counts = exchanged_counts,
                                  .uneven_layout = layout};

}  // namespace fccl::perf::alltoallv
