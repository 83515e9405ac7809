// Path: the ways that the bytes of a call can take.
#pragma once

#include <cstdint>

namespace fccl::core {

enum class Path : uint8_t { alone, mailbox, whole, mapped, attach, ring, across };

}  // namespace fccl::core
