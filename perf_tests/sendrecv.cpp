// Measures and checks sends and receives: every rank sends to the next one, and the last to the first, all in one group.
#include "runner.h"

namespace fccl::perf::sendrecv {
namespace {

Layout layout(std::size_t count, Place) { return {.count = count, .send_count = count, .recv_count = count}; }

// The group returns the error of a refused call.
Result<void> start(Communicator& communicator, const Operation& operation) {
  const int ranks = communicator.ranks();
  return group([&] {
    static_cast<void>(communicator.send(operation.send, (communicator.rank() + 1) % ranks, operation.stream));
    static_cast<void>(communicator.receive(operation.recv, (communicator.rank() + ranks - 1) % ranks, operation.stream));
  });
}

Origin origin(const Layout&, Place place, std::size_t) { return {(place.rank + place.ranks - 1) % place.ranks, 0}; }

}  // namespace

extern const Collective kMeasured{.collective = fcclCollSend,
                                  .reduces = false,
                                  .rooted = false,
                                  .has_blocks = false,
                                  .works_in_place = false,
                                  .layout = layout,
                                  .start = start,
                                  .origin = origin,
                                  .bus_factor = every_byte_once};

}  // namespace fccl::perf::sendrecv
