// The Llama of trainer/fsdp as a row of layers, each a function of its parameters and of what comes in.
#pragma once

#include <torch/types.h>

#include <vector>

#include "arguments.h"

namespace trainer {

// The layers are the embedding, the blocks and the head. It holds no parameters: the caller has them.
class Llama {
 public:
  explicit Llama(const Settings& settings);

  int layers() const { return static_cast<int>(settings_.layers) + 2; }
  // The shapes of a layer's parameters, in the order in which `forward` takes them.
  std::vector<std::vector<int64_t>> parameters(int layer) const;
  // First values of a layer, one parameter after the other; the same on every rank.
  torch::Tensor first_values(int layer) const;
  // Tokens go into the first layer, logits come out of the last one.
  torch::Tensor forward(int layer, const std::vector<torch::Tensor>& parameters, const torch::Tensor& input) const;

 private:
  torch::Tensor attention(const std::vector<torch::Tensor>& parameters, const torch::Tensor& input) const;
  torch::Tensor norm(const torch::Tensor& input, const torch::Tensor& weight) const;
  torch::Tensor rotated(const torch::Tensor& heads) const;

  Settings settings_;
  torch::Tensor cosines_, sines_;
};

// Mean cross entropy of every token given the ones before it.
torch::Tensor next_token_loss(const torch::Tensor& logits, const torch::Tensor& targets);

}  // namespace trainer
