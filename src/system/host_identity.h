// Host identity: the text by which ranks find out that they share memory.
#pragma once

#include <string>

namespace fccl {

// Equal for two processes exactly if they can share memory, pids and abstract unix sockets: boot id, host name and the
// namespaces of IPC, pids and network. A non-empty `override_text` (FCCL_HOST_ID) stands for all of it.
std::string host_identity(const std::string& override_text);

// As gethostname(2) gives it; for messages.
std::string host_name();

}  // namespace fccl
