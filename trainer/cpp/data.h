// Reads text as tokens, a byte each, and draws batches that are the same for any number of ranks.
#pragma once

#include <torch/types.h>

#include "arguments.h"

namespace trainer {

// The tokens of every file that --data names, in the order of their names, without the last twentieth, which trainer/fsdp keeps
// for validation.
torch::Tensor read_corpus(const Settings& settings);

// One rank's sequences of one step: (global_batch / ranks, seq_len + 1).
torch::Tensor training_batch(const torch::Tensor& corpus, const Settings& settings, int64_t step, int rank, int ranks);

}  // namespace trainer
