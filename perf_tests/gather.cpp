// Measures and checks Gather: the blocks of all ranks, one after another, on the root.
#include "runner.h"

namespace fccl::perf {
namespace {

Layout layout(std::size_t count, Place place) {
  return {.count = count,
          .send_count = count,
          .recv_count = place.rank == place.root ? count * static_cast<std::size_t>(place.ranks) : 0,
          .in_place_send = count * static_cast<std::size_t>(place.rank)};
}

Result<void> start(Communicator& communicator, const Operation& operation) {
  return communicator.gather(operation.send, operation.recv, operation.root, operation.stream);
}

Origin origin(const Layout&, Place, std::size_t block) { return {static_cast<int>(block), 0}; }

constexpr Collective kGather{.collective = fcclCollGather,
                             .reduces = false,
                             .rooted = true,
                             .has_blocks = true,
                             .layout = layout,
                             .start = start,
                             .origin = origin,
                             .bus_factor = all_but_own_block};

}  // namespace
}  // namespace fccl::perf

int main(int argc, char** argv) { return fccl::perf::run(argc, argv, fccl::perf::kGather); }
