// Fabric: a network inside one process.
#include "transports/fabric.h"

#include "transports/endpoint.h"
#include "transports/fabric_state.h"

namespace fccl::core::simulated {

Fabric::Fabric(const FabricOptions& options) : state_(std::make_shared<FabricState>(options)) {}

std::unique_ptr<Transport> Fabric::open() { return std::make_unique<Endpoint>(state_); }

void Fabric::lose(int endpoint, int rail, Loss loss) {
  state_->inbox(static_cast<uint64_t>(endpoint), static_cast<uint64_t>(rail))->loss = loss;
}

const FaultCounts& Fabric::counts() const { return state_->counts; }

}  // namespace fccl::core::simulated
