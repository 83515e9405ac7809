// Measures and checks an AllGather made of sends and receives: in each step two ranks whose numbers differ in one bit exchange
// all that they have.
#include <algorithm>

#include "elements.h"
#include "runner.h"

namespace fccl::perf::hypercube {
namespace {

Layout layout(std::size_t count, Place place) {
  return {.count = count,
          .send_count = count,
          .recv_count = count * static_cast<std::size_t>(place.ranks),
          .in_place_send = count * static_cast<std::size_t>(place.rank)};
}

std::size_t bytes_of(fcclDataType_t datatype) {
  return std::ranges::find(element_types(), datatype, &ElementType::datatype)->bytes;
}

// Each step is one group. The first step sends the input itself, so that the copy into the result can run at the same time.
Result<void> start(Communicator& communicator, const Operation& operation) {
  const int rank = communicator.rank();
  const std::size_t bytes = operation.count * bytes_of(operation.send.datatype);
  std::byte* recv = static_cast<std::byte*>(operation.recv.data);
  const auto blocks = [&](int first, int number) {
    return Target(recv + static_cast<std::size_t>(first) * bytes, operation.count * static_cast<std::size_t>(number),
                  operation.recv.datatype);
  };
  const bool copies = operation.send.data != blocks(rank, 1).data;
  for (int bit = 1, end = communicator.ranks(); bit < end || bit == 1; bit *= 2) {
    const int mine = rank & ~(bit - 1);
    const auto done = group([&] {
      if (bit == 1 && copies) {
        static_cast<void>(communicator.send(operation.send, rank, operation.stream));
        static_cast<void>(communicator.receive(blocks(rank, 1), rank, operation.stream));
      }
      if (bit == end) return;
      const Target given = blocks(mine, bit);
      const Source sent = bit == 1 ? operation.send : Source(given.data, given.count, given.datatype);
      static_cast<void>(communicator.send(sent, rank ^ bit, operation.stream));
      static_cast<void>(communicator.receive(blocks(mine ^ bit, bit), rank ^ bit, operation.stream));
    });
    if (!done) return done;
  }
  return {};
}

Origin origin(const Layout&, Place, std::size_t block) { return {static_cast<int>(block), 0}; }

}  // namespace

extern const Collective kMeasured{.collective = fcclCollSend,
                                  .reduces = false,
                                  .rooted = false,
                                  .has_blocks = true,
                                  .wants_power_of_two = true,
                                  .has_mpi_call = false,
                                  .layout = layout,
                                  .start = start,
                                  .origin = origin,
                                  .bus_factor = all_but_own_block};

}  // namespace fccl::perf::hypercube
