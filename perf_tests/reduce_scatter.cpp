// Measures and checks ReduceScatter: block r of the sum over ranks on rank r.
#include "runner.h"

namespace fccl::perf {
namespace {

Layout layout(std::size_t elements, std::size_t element_bytes, Place place) {
  const std::size_t block = block_of(elements, element_bytes, place.ranks);
  return {.count = block,
          .send_count = block * static_cast<std::size_t>(place.ranks),
          .recv_count = block,
          .in_place_recv = block * static_cast<std::size_t>(place.rank)};
}

Result<void> start(Communicator& communicator, const Operation& operation) {
  return communicator.reduce_scatter(operation.send, operation.recv, operation.op, operation.stream);
}

Origin origin(const Layout& layout, Place place, std::size_t index) {
  return {Origin::kEveryRank, layout.count * static_cast<std::size_t>(place.rank) + index};
}

double bus_factor(int ranks) { return (ranks - 1.0) / ranks; }

constexpr Collective kReduceScatter{
    .reduces = true, .rooted = false, .layout = layout, .start = start, .origin = origin, .bus_factor = bus_factor};

}  // namespace
}  // namespace fccl::perf

int main(int argc, char** argv) { return fccl::perf::run(argc, argv, fccl::perf::kReduceScatter); }
