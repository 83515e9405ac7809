// AdamW and plain gradient descent on this rank's shards, and the learning rate of every step.
#pragma once

#include <vector>

#include "sharding.h"

namespace trainer {

// A straight rise over `warmup` steps, then half a cosine down to a tenth; steps count from 1.
double learning_rate(const Settings& settings, int64_t step);

// Changes the shards by their gradients; each rank those it keeps, with the state that belongs to them. One thread uses it.
class Optimizer {
 public:
  Optimizer(const Settings& settings, Sharding& sharding);

  void step(int64_t step, double rate);
  // The square of the norm of this rank's part of the gradient.
  double squared_norm() const;
  void scale_gradients(double factor);

  // Per layer: none for gradient descent; for AdamW the running means of the gradient and of its square.
  const std::vector<std::vector<torch::Tensor>>& state() const { return state_; }
  size_t held() const { return memory_.most(); }

 private:
  Sharding& sharding_;
  bool is_adam_;
  CountedMemory memory_;
  std::vector<std::vector<torch::Tensor>> state_;
};

}  // namespace trainer
