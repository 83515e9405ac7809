// Plugin: opens a transport that a shared library provides, so that libfccl does not depend on that library's own needs.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "settings/settings.h"
#include "wire/transport.h"

namespace fccl::core {

// `library` is what FCCL_TRANSPORT_PLUGIN says, the path of a plug-in; "" means libfccl_ofi.so, which is looked for only beside
// the library or program that contains this code, as any name without a "/" is. The library stays loaded for the process's
// life, since it holds the transports' code and libfabric's threads. Its contract is compared before any of its code runs, save
// what the loader runs. Errors say which library, what is wrong with it, and what to do. Any thread may call. The process's
// signal handlers stay as they were: libraries under libfabric install handlers for SIGTERM and others when they are loaded.
Result<std::unique_ptr<Transport>> open_transport(const std::string& library, const TransportRequest& request);

// Returns the file name of the library that open_transport loads.
std::string name_of_plugin(const std::string& library);

// Lists the NICs that open_transport would use. An offer whose provider, names or costs make no sense is an error.
Result<OfferedNics> list_nics(const std::string& library, const NicsRequest& request);

// Lists the NICs that FCCL_TRANSPORT_PLUGIN, FCCL_TRANSPORT and FCCL_NICS allow: in the order of FCCL_NICS, else in the order
// in which hosts count them, so that equal hosts agree on it.
Result<OfferedNics> allowed_nics(const Settings& settings);

}  // namespace fccl::core
