// Plugin: opens a transport that a shared library provides, so that libfccl needs none of what that library needs.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "wire/transport.h"

namespace fccl {

// A transport of libfccl_ofi.so, which is looked for beside the library or program that this code is in, and nowhere else. It
// stays loaded for the process's life, as the transports' code and libfabric's threads are in it. The error says what is
// missing and how to install it. Any thread may call. What the process does on signals stays as it was: libraries under
// libfabric take SIGTERM and others for themselves when they are loaded.
Result<std::unique_ptr<Transport>> open_transport(const TransportRequest& request);

// The NICs that it would open transports on.
Result<OfferedNics> list_nics(const NicsRequest& request);

// The same of a library of another name there, or of another place if it is a path.
Result<std::unique_ptr<Transport>> open_transport_of(const std::string& library, const TransportRequest& request);
Result<OfferedNics> list_nics_of(const std::string& library, const NicsRequest& request);

}  // namespace fccl
