// A plug-in like those with libfabric in them: it takes signals for itself when it is loaded and when it is asked.
#include <csignal>
#include <cstdlib>

#include "wire/transport.h"

namespace fccl::core {
namespace {

void end_the_process(int) { std::_Exit(1); }

[[gnu::constructor]] void take_when_loaded() { ::signal(SIGTERM, end_the_process); }

Result<OfferedNics> list_none(const NicsRequest&) {
  ::signal(SIGINT, end_the_process);
  return fail(fcclSystemError, "it has no NICs");
}

}  // namespace
}  // namespace fccl::core

const fccl::core::TransportPlugin fccl_transport_plugin{fccl::core::kTransportContract, nullptr, fccl::core::list_none};
