// Plugin: opens a transport that a shared library provides, so that libfccl does not depend on that library's own needs.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "wire/transport.h"

namespace fccl::core {

// Opens a transport of libfccl_ofi.so, which it looks for only beside the library or program that contains this code. The
// library stays loaded for the process's life, since it holds the transports' code and libfabric's threads. The error says
// which part is missing and how to install it. Any thread may call. The process's signal handlers stay as they were: libraries
// under libfabric install handlers for SIGTERM and others when they are loaded.
Result<std::unique_ptr<Transport>> open_transport(const TransportRequest& request);

// Lists the NICs that open_transport would use.
Result<OfferedNics> list_nics(const NicsRequest& request);

// Do so with a library of another name beside this code, or at another place if it is a path.
Result<std::unique_ptr<Transport>> open_transport_of(const std::string& library, const TransportRequest& request);
Result<OfferedNics> list_nics_of(const std::string& library, const NicsRequest& request);

}  // namespace fccl::core
