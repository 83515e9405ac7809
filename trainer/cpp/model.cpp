// Embedding, attention with rotary positions, SwiGLU, RMSNorm: as transformers' LlamaForCausalLM computes them.
#include "model.h"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/csrc/autograd/generated/variable_factories.h>

namespace trainer {
namespace {

constexpr double kRotaryBase = 10000, kDeviation = 0.02, kEpsilon = 1e-5;

// The places of a block's parameters.
enum { kInputNorm, kQuery, kKey, kValue, kOutput, kInnerNorm, kGate, kUp, kDown };

}  // namespace

Llama::Llama(const Settings& settings) : settings_(settings) {
  const int64_t width = settings.hidden / settings.heads;
  const auto dtype = settings.dtype == "float64" ? torch::kFloat64 : torch::kFloat32;
  const auto frequencies = torch::pow(kRotaryBase, -torch::arange(0, width, 2, dtype) / static_cast<double>(width));
  const auto angles = torch::outer(torch::arange(0, settings.seq_len, dtype), frequencies);
  cosines_ = torch::cat({angles, angles}, 1).cos();
  sines_ = torch::cat({angles, angles}, 1).sin();
}

std::vector<std::vector<int64_t>> Llama::parameters(int layer) const {
  const int64_t hidden = settings_.hidden, inner = settings_.intermediate, vocabulary = settings_.vocabulary;
  if (layer == 0) return {{vocabulary, hidden}};
  if (layer == layers() - 1) return {{hidden}, {vocabulary, hidden}};
  return {{hidden}, {hidden, hidden}, {hidden, hidden}, {hidden, hidden}, {hidden, hidden},
          {hidden}, {inner, hidden},  {inner, hidden},  {hidden, inner}};
}

torch::Tensor Llama::first_values(int layer) const {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(settings_.seed * 1'000'003 + static_cast<uint64_t>(layer));
  std::vector<torch::Tensor> values;
  for (const auto& shape : parameters(layer)) {
    const bool is_norm = shape.size() == 1;
    values.push_back((is_norm ? torch::ones(shape) : torch::randn(shape, generator) * kDeviation).flatten());
  }
  return torch::cat(values).to(cosines_.scalar_type());
}

torch::Tensor Llama::forward(int layer, const std::vector<torch::Tensor>& parameters, const torch::Tensor& input) const {
  if (layer == 0) return torch::embedding(parameters[0], input);
  if (layer == layers() - 1) return torch::linear(norm(input, parameters[0]), parameters[1]);
  const torch::Tensor middle = input + attention(parameters, norm(input, parameters[kInputNorm]));
  const torch::Tensor inner = norm(middle, parameters[kInnerNorm]);
  const torch::Tensor gated = torch::silu(torch::linear(inner, parameters[kGate])) * torch::linear(inner, parameters[kUp]);
  return middle + torch::linear(gated, parameters[kDown]);
}

torch::Tensor Llama::attention(const std::vector<torch::Tensor>& parameters, const torch::Tensor& input) const {
  const int64_t batch = input.size(0), length = input.size(1), hidden = settings_.hidden;
  const auto heads = [&](const torch::Tensor& weight) {
    return torch::linear(input, weight).view({batch, length, settings_.heads, hidden / settings_.heads}).transpose(1, 2);
  };
  const auto mixed = at::scaled_dot_product_attention(rotated(heads(parameters[kQuery])), rotated(heads(parameters[kKey])),
                                                      heads(parameters[kValue]), /*attn_mask=*/{}, /*dropout_p=*/0,
                                                      /*is_causal=*/true);
  return torch::linear(mixed.transpose(1, 2).reshape({batch, length, hidden}), parameters[kOutput]);
}

torch::Tensor Llama::norm(const torch::Tensor& input, const torch::Tensor& weight) const {
  return weight * (input * torch::rsqrt(input.square().mean(-1, /*keepdim=*/true) + kEpsilon));
}

torch::Tensor Llama::rotated(const torch::Tensor& heads) const {
  const auto halves = heads.chunk(2, -1);
  return heads * cosines_ + torch::cat({-halves[1], halves[0]}, -1) * sines_;
}

torch::Tensor next_token_loss(const torch::Tensor& logits, const torch::Tensor& targets) {
  return at::cross_entropy_loss(logits.flatten(0, 1), targets.flatten());
}

}  // namespace trainer
