// Host identity: the text by which ranks find out that they share memory.
#pragma once

#include <string>

namespace fccl {

// Equal for two processes exactly if they can share memory, pids and abstract unix sockets: boot id, host name and the
// namespaces of IPC, pids and network. A non-empty `override_text` (FCCL_HOST_ID) stands for boot id, name and the namespace of
// IPC; nothing can stand for the others, since ranks of one host watch each other by pid and meet at an abstract socket.
std::string host_identity(const std::string& override_text);

// As gethostname(2) gives it; for messages.
std::string host_name();

}  // namespace fccl
