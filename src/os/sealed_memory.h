// Sealed memory: bytes that processes of a host share and nobody can change any more.
#pragma once

#include <string>

#include "base/result.h"
#include "os/descriptor.h"

namespace fccl::core {

// Returns no descriptor if the system gives none. /proc shows `name`.
Descriptor sealed_memory(const char* name, const std::string& bytes);
// Returns the bytes of another process's sealed memory, `size` of them.
Result<std::string> read_sealed_memory(const Descriptor& memory, size_t size);

}  // namespace fccl::core
