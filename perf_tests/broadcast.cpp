// Measures and checks Broadcast: the root's buffer on every rank.
#include "runner.h"

namespace fccl::perf {
namespace {

Layout layout(std::size_t elements, std::size_t, Place) {
  return {.count = elements, .send_count = elements, .recv_count = elements};
}

Result<void> start(Communicator& communicator, const Operation& operation) {
  return communicator.broadcast(operation.send, operation.recv, operation.root, operation.stream);
}

Origin origin(const Layout&, Place place, std::size_t index) { return {place.root, index}; }

double bus_factor(int) { return 1.0; }

constexpr Collective kBroadcast{
    .reduces = false, .rooted = true, .layout = layout, .start = start, .origin = origin, .bus_factor = bus_factor};

}  // namespace
}  // namespace fccl::perf

int main(int argc, char** argv) { return fccl::perf::run(argc, argv, fccl::perf::kBroadcast); }
