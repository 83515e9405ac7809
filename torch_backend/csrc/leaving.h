// Lets the ranks of a healthy default group leave at one moment.
#pragma once

#include <c10/util/intrusive_ptr.h>

#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>

namespace fccl::torch {

// Returns once all ranks have called it with this key and rank 0 has closed its store; a rank waits at most 1 s for the others
// and 0.1 s for the store, even if the store hangs. A program that makes its next group at the same address must not meet the
// store that rank 0 is about to close.
void leave_together(const c10::intrusive_ptr<c10d::Store>& store, const std::string& key, int rank, int size);

}  // namespace fccl::torch
