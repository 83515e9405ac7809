// Advance: how far a step took an operation.
#pragma once

namespace fccl {

// Of an operation that has not failed.
enum class Advance { none, some, done };

}  // namespace fccl
