// One layer computes while the next one is gathered and the last one's gradient is reduced, if calls overlap.
#include "training.h"

#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>

#include "data.h"
#include "report.h"

namespace trainer {
namespace {

// Forward and backward pass; leaves every shard's gradient in its place. Returns this rank's loss.
double compute_gradients(const Llama& model, Sharding& sharding, const torch::Tensor& sequences) {
  const int last = sharding.layers() - 1;
  const torch::Tensor tokens = sequences.slice(1, 0, -1), targets = sequences.slice(1, 1);
  std::vector<torch::Tensor> inputs, outputs;
  sharding.gather(0);
  for (int layer = 0; layer <= last; ++layer) {
    const auto& parameters = sharding.use(layer);
    if (layer < last) sharding.gather(layer + 1);
    // Each layer has a graph of its own, so that the backward pass stops between layers.
    inputs.push_back(layer == 0 ? tokens : outputs.back().detach().requires_grad_());
    outputs.push_back(model.forward(layer, parameters, inputs.back()));
    // The backward pass begins with the last layer, so giving it back in between would be for nothing.
    if (layer < last) sharding.release(layer);
  }
  outputs.back() = next_token_loss(outputs.back(), targets);
  const double loss = outputs.back().item<double>();
  torch::Tensor gradient = torch::ones_like(outputs.back());
  for (int layer = last; layer >= 0; --layer) {
    // The gradient of the embedding does not depend on its values: layer 0 is not gathered again.
    if (layer > 0) sharding.use(layer);
    if (layer > 1) sharding.gather(layer - 1);
    sharding.expect_gradient(layer);
    outputs.back().backward(gradient);
    gradient = inputs.back().grad();
    outputs.pop_back();
    inputs.pop_back();
    if (layer > 0) sharding.release(layer);
    sharding.reduce(layer);
  }
  sharding.finish_reducing();
  return loss;
}

// From gradients to the next parameters; `loss` becomes the mean over the ranks.
Metrics update(const Settings& settings, int64_t step, double loss, Sharding& sharding, Optimizer& optimizer) {
  torch::Tensor sums = torch::tensor({loss, optimizer.squared_norm()}, torch::kFloat64);
  sharding.sum(sums);
  const double norm = std::sqrt(sums[1].item<double>()), rate = learning_rate(settings, step);
  if (norm > settings.clip) optimizer.scale_gradients(settings.clip / (norm + 1e-6));
  optimizer.step(step, rate);
  return {step, sums[0].item<double>() / sharding.communicator().ranks(), rate, norm, 0};
}

// The last line of a run: a test compares the calls that the library has counted, and the bytes, with what sharding implies.
void summarize(const Metrics& last, const Sharding& sharding, const Optimizer& optimizer) {
  const auto calls = [&](fcclColl_t collective) {
    const auto counted = sharding.communicator().counter(collective);
    return counted ? counted->calls : 0;
  };
  const Held held = sharding.held();
  std::printf(R"({"steps": %ld, "loss": %.17g, "ranks": %d, )", last.step, last.loss, sharding.communicator().ranks());
  std::printf(R"("all_gathers": %llu, "reduce_scatters": %llu, "all_reduces": %llu, )", calls(fcclCollAllGather),
              calls(fcclCollReduceScatter), calls(fcclCollAllReduce));
  std::printf(R"("held": {"parameters": %zu, "gradients": %zu, "optimizer": %zu, "rows": %zu, "row_gradients": %zu}})",
              held.parameters, held.gradients, optimizer.held(), held.rows, held.row_gradients);
  std::puts("");
}

}  // namespace

void train(const Settings& settings, const torch::Tensor& corpus, fccl::Communicator& communicator,
           const std::filesystem::path& folder, const std::optional<Checkpoint>& resumed) {
  const int rank = communicator.rank(), ranks = communicator.ranks();
  const Llama model(settings);
  Sharding sharding(model, communicator, settings.overlap == "yes");
  Optimizer optimizer(settings, sharding);
  if (resumed) load(*resumed, sharding, optimizer);
  Metrics metrics{resumed ? resumed->step : 0};
  auto report = rank == 0 ? std::make_unique<Report>(folder, settings) : nullptr;
  if (report)
    std::printf("%s on %d ranks, %ld tokens; files in %s\n", settings.model.c_str(), ranks, corpus.size(0), folder.c_str());
  while (metrics.step < settings.steps) {
    const auto begin = std::chrono::steady_clock::now();
    const int64_t step = metrics.step + 1;
    const double loss = compute_gradients(model, sharding, training_batch(corpus, settings, step, rank, ranks));
    metrics = update(settings, step, loss, sharding, optimizer);
    metrics.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (report) report->step(metrics);
    const bool is_time = step == settings.steps || (settings.save_every > 0 && step % settings.save_every == 0);
    if (is_time && settings.save_every != 0) save(folder, step, settings, sharding, optimizer);
  }
  if (!report) return;
  report->draw();
  summarize(metrics, sharding, optimizer);
}

}  // namespace trainer
