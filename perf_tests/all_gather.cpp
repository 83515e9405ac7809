// Measures and checks AllGather: the blocks of all ranks, one after another, on every rank.
#include "runner.h"

namespace fccl::perf {
namespace {

Layout layout(std::size_t elements, std::size_t element_bytes, Place place) {
  const std::size_t block = block_of(elements, element_bytes, place.ranks);
  return {.count = block,
          .send_count = block,
          .recv_count = block * static_cast<std::size_t>(place.ranks),
          .in_place_send = block * static_cast<std::size_t>(place.rank)};
}

Result<void> start(Communicator& communicator, const Operation& operation) {
  return communicator.all_gather(operation.send, operation.recv, operation.stream);
}

Origin origin(const Layout& layout, Place, std::size_t index) {
  return {static_cast<int>(index / layout.count), index % layout.count};
}

double bus_factor(int ranks) { return (ranks - 1.0) / ranks; }

constexpr Collective kAllGather{
    .reduces = false, .rooted = false, .layout = layout, .start = start, .origin = origin, .bus_factor = bus_factor};

}  // namespace
}  // namespace fccl::perf

int main(int argc, char** argv) { return fccl::perf::run(argc, argv, fccl::perf::kAllGather); }
