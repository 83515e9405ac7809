// Measures and checks Broadcast: the root's buffer on every rank.
#include "runner.h"

namespace fccl::perf::broadcast {
namespace {

Layout layout(std::size_t count, Place) { return {.count = count, .send_count = count, .recv_count = count}; }

Result<void> start(Communicator& communicator, const Operation& operation) {
  return communicator.broadcast(operation.send, operation.recv, operation.root, operation.stream);
}

Origin origin(const Layout&, Place place, std::size_t) { return {place.root, 0}; }

}  // namespace

extern const Collective kMeasured{.collective = fcclCollBroadcast,
                                  .reduces = false,
                                  .rooted = true,
                                  .has_blocks = false,
                                  .layout = layout,
                                  .start = start,
                                  .origin = origin,
                                  .bus_factor = every_byte_once};

}  // namespace fccl::perf::broadcast
