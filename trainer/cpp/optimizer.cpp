// The formulas of AdamW and of plain gradient descent, a layer's shard at a time.
#include "optimizer.h"

#include <cmath>
#include <numbers>

namespace trainer {
namespace {

constexpr double kLowest = 0.1;  // part of the highest learning rate that is left when the cosine ends
constexpr double kMeanKept = 0.9, kSquareKept = 0.95, kDecay = 0.1, kEpsilon = 1e-8;

}  // namespace

double learning_rate(const Settings& settings, int64_t step) {
  if (step <= settings.warmup) return settings.lr * static_cast<double>(step) / static_cast<double>(settings.warmup);
  const auto span = static_cast<double>(std::max<int64_t>(1, settings.decay_steps - settings.warmup));
  const double gone = std::min(1.0, static_cast<double>(step - settings.warmup) / span);
  return settings.lr * (kLowest + (1 - kLowest) * 0.5 * (1 + std::cos(std::numbers::pi * gone)));
}

Optimizer::Optimizer(const Settings& settings, Sharding& sharding)
    : sharding_(sharding), is_adam_(settings.optimizer == "adamw"), state_(static_cast<size_t>(sharding.layers())) {
  if (!is_adam_) return;
  for (int index = 0; index < sharding.layers(); ++index) {
    const torch::Tensor& shard = sharding.layer(index).shard;
    for (int part = 0; part < 2; ++part)
      state_[static_cast<size_t>(index)].push_back(memory_.zeros(shard.numel(), shard.scalar_type()));
  }
}

void Optimizer::step(int64_t step, double rate) {
  const double mean_correction = 1 - std::pow(kMeanKept, step), square_correction = 1 - std::pow(kSquareKept, step);
  for (int index = 0; index < sharding_.layers(); ++index) {
    Layer& layer = sharding_.layer(index);
    if (!is_adam_) {
      layer.shard.sub_(layer.gradient, rate);
      continue;
    }
    torch::Tensor &mean = state_[static_cast<size_t>(index)][0], &square = state_[static_cast<size_t>(index)][1];
    mean.lerp_(layer.gradient, 1 - kMeanKept);
    square.mul_(kSquareKept).addcmul_(layer.gradient, layer.gradient, 1 - kSquareKept);
    layer.shard.mul_(1 - rate * kDecay);
    layer.shard.addcdiv_(mean, (square / square_correction).sqrt_().add_(kEpsilon), -rate / mean_correction);
  }
}

double Optimizer::squared_norm() const {
  double sum = 0;
  for (int index = 0; index < sharding_.layers(); ++index) {
    const torch::Tensor& gradient = sharding_.layer(index).gradient;
    sum += gradient.square().sum(torch::kFloat64).item<double>();
  }
  return sum;
}

void Optimizer::scale_gradients(double factor) {
  for (int index = 0; index < sharding_.layers(); ++index) sharding_.layer(index).gradient.mul_(factor);
}

}  // namespace trainer
