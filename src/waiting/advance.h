// Advance: how far a step took an operation that has not failed.
#pragma once

namespace fccl::core {

enum class Advance { none, some, done };

}  // namespace fccl::core
