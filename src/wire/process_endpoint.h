// The endpoint of this process: one end of the network, which all its communicators share.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"

namespace fccl::core {

class Endpoint;
struct TransportRequest;

// Returns the endpoint for this plug-in, as open_transport has it, and this request, opened when the first communicator asks,
// and closed when the last one lets go. A fork opens its own. Any thread may call.
Result<std::shared_ptr<Endpoint>> endpoint_of_process(const std::string& plugin, const TransportRequest& request);

// True if there is one, of any request.
bool has_process_endpoint();

}  // namespace fccl::core
