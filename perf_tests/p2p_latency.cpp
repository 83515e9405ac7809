// Measures and checks the latency of sends and receives, as osu_latency does: a rank of the first half sends to its partner of
// the second half, which sends back.
#include "runner.h"

namespace fccl::perf::p2p_latency {
namespace {

Layout layout(std::size_t count, Place) { return {.count = count, .send_count = count, .recv_count = count}; }

Result<void> start(Communicator& communicator, const Operation& operation) {
  const int partner = partner_of(communicator.rank(), communicator.ranks());
  if (communicator.rank() < partner) {
    const auto sent = communicator.send(operation.send, partner, operation.stream);
    return sent ? communicator.receive(operation.recv, partner, operation.stream) : sent;
  }
  const auto received = communicator.receive(operation.recv, partner, operation.stream);
  return received ? communicator.send(operation.send, partner, operation.stream) : received;
}

Origin origin(const Layout&, Place place, std::size_t) { return {partner_of(place.rank, place.ranks), 0}; }

}  // namespace

extern const Collective kMeasured{.collective = fcclCollSend,
                                  .reduces = false,
                                  .rooted = false,
                                  .has_blocks = false,
                                  .works_in_place = false,
                                  .wants_pairs = true,
                                  .has_mpi_call = false,
                                  .messages = 2,
                                  .layout = layout,
                                  .start = start,
                                  .origin = origin,
                                  .bus_factor = every_byte_once};

}  // namespace fccl::perf::p2p_latency
