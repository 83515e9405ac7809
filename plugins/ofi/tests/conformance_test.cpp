// The conformance suite over libfabric's tcp.
#include "transports/conformance.h"

#include "loopback.h"

namespace fccl::core {

namespace {

INSTANTIATE_TEST_SUITE_P(Tcp, Conformance, testing::Values(TransportFactory{"loopback", open_loopback}), name_of_factory);

}  // namespace

}  // namespace fccl::core
