// Measures and checks the bandwidth of sends and receives, as osu_bw and osu_mbw_mr do: each rank of the first half sends its
// partner of the second half 64 messages in a group, and waits for one element that says that they have come.
#include <algorithm>

#include "runner.h"

namespace fccl::perf::p2p_bandwidth {
namespace {

constexpr int kWindow = 64;

Layout layout(std::size_t count, Place place) {
  const std::size_t answer = std::min<std::size_t>(count, 1);
  const bool sends = place.rank < partner_of(place.rank, place.ranks);
  return {.count = count, .send_count = sends ? count : answer, .recv_count = sends ? answer : count};
}

// All messages have the same content and come into one buffer, as OSU's do. The group returns the error of a refused call.
Result<void> start(Communicator& communicator, const Operation& operation) {
  const int partner = partner_of(communicator.rank(), communicator.ranks());
  const bool sends = communicator.rank() < partner;
  auto moved = group([&] {
    for (int message = 0; message < kWindow; ++message)
      static_cast<void>(sends ? communicator.send(operation.send, partner, operation.stream)
                              : communicator.receive(operation.recv, partner, operation.stream));
  });
  if (!moved) return moved;
  return sends ? communicator.receive(operation.recv, partner, operation.stream)
               : communicator.send(operation.send, partner, operation.stream);
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
                                  .messages = kWindow,
                                  .layout = layout,
                                  .start = start,
                                  .origin = origin,
                                  .bus_factor = every_byte_once};

}  // namespace fccl::perf::p2p_bandwidth
