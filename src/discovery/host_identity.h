// Host identity: a text that is equal on two ranks if they can share memory.
#pragma once

#include <string>

namespace fccl::core {

// Returns equal texts in two processes exactly if they can share memory, pids and abstract unix sockets. The text contains the
// boot id, the host name and the namespaces of IPC, pids and network. A non-empty `override_text` (FCCL_HOST_ID) replaces the
// boot id, the name and the namespace of IPC. It cannot replace the other two, because ranks of one host watch each other by
// pid and meet at an abstract socket.
std::string host_identity(const std::string& override_text);

// Returns the name from gethostname(2), for messages.
std::string host_name();

}  // namespace fccl::core
