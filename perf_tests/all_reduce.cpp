// Measures and checks AllReduce: the sum over ranks on every rank.
#include "runner.h"

namespace fccl::perf {
namespace {

Layout layout(std::size_t elements, std::size_t, Place) {
  return {.count = elements, .send_count = elements, .recv_count = elements};
}

Result<void> start(Communicator& communicator, const Operation& operation) {
  return communicator.all_reduce(operation.send, operation.recv, operation.op, operation.stream);
}

Origin origin(const Layout&, Place, std::size_t index) { return {Origin::kEveryRank, index}; }

double bus_factor(int ranks) { return 2.0 * (ranks - 1.0) / ranks; }

constexpr Collective kAllReduce{
    .reduces = true, .rooted = false, .layout = layout, .start = start, .origin = origin, .bus_factor = bus_factor};

}  // namespace
}  // namespace fccl::perf

int main(int argc, char** argv) { return fccl::perf::run(argc, argv, fccl::perf::kAllReduce); }
