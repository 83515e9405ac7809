// The loop: forward and backward layer by layer, reduced gradients, a step of the optimizer.
#pragma once

#include "checkpoint.h"

namespace trainer {

// Trains one rank to the last step, from a checkpoint if there is one; rank 0 reports into the folder, and ends by printing a
// summary. Failures are thrown.
void train(const Settings& settings, const torch::Tensor& corpus, fccl::Communicator& communicator,
           const std::filesystem::path& folder, const std::optional<Checkpoint>& resumed);

}  // namespace trainer
