// Two stages of a pipeline train one model, micro-batch by micro-batch: activations go forward, gradients come back.
//
// Stage 0 holds h = a x, stage 1 holds y = b h and the loss (y - 6 x)^2. Stage 0 runs ahead by as many micro-batches as stage 1
// can have on its way, so both work at the same time; sends and receives go on streams, in the order in which they are made.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fccl/fccl.hpp>
#include <thread>
#include <vector>

namespace {

constexpr int kBatches = 4;  // micro-batches of a step
constexpr std::size_t kSamples = 2000;
constexpr int kSteps = 60;
constexpr float kRate = 0.1f;

using Samples = std::vector<float>;

float sample(std::size_t index) { return static_cast<float>(index % 7) / 7.0f; }

// Ends the program with the reason; both stages see the first one.
void require(const fccl::Result<void>& done) {
  if (done) return;
  std::fprintf(stderr, "%s\n", done.error().message.c_str());
  std::exit(1);
}

float first_stage(fccl::Communicator& communicator) {
  fccl::Stream forward = *fccl::Stream::create(), backward = *fccl::Stream::create();
  std::array<Samples, kBatches> activations, gradients;
  for (auto* all : {&activations, &gradients})
    for (Samples& each : *all) each.resize(kSamples);
  float a = 0.5f;
  for (int step = 0; step < kSteps; ++step) {
    for (int batch = 0; batch < kBatches; ++batch) {
      for (std::size_t i = 0; i < kSamples; ++i) activations[batch][i] = a * sample(i + static_cast<std::size_t>(batch));
      require(communicator.send(activations[batch], 1, forward));
      require(communicator.receive(gradients[batch], 1, backward));
    }
    require(forward.synchronize());
    require(backward.synchronize());
    float slope = 0;
    for (int batch = 0; batch < kBatches; ++batch)
      for (std::size_t i = 0; i < kSamples; ++i) slope += gradients[batch][i] * sample(i + static_cast<std::size_t>(batch));
    a -= kRate * slope / (kBatches * kSamples);
  }
  return a;
}

float last_stage(fccl::Communicator& communicator) {
  fccl::Stream backward = *fccl::Stream::create();
  std::array<Samples, kBatches> gradients;
  for (Samples& each : gradients) each.resize(kSamples);
  Samples activations(kSamples);
  float b = 0.5f;
  for (int step = 0; step < kSteps; ++step) {
    float slope = 0, loss = 0;
    for (int batch = 0; batch < kBatches; ++batch) {
      require(communicator.receive(activations, 0));
      for (std::size_t i = 0; i < kSamples; ++i) {
        const float error = b * activations[i] - 6 * sample(i + static_cast<std::size_t>(batch));
        loss += error * error;
        slope += 2 * error * activations[i];
        gradients[batch][i] = 2 * error * b;
      }
      require(communicator.send(gradients[batch], 0, backward));
    }
    require(backward.synchronize());
    b -= kRate * slope / (kBatches * kSamples);
    if (step % 20 == 0) std::printf("step %d: loss %.4f\n", step, loss / (kBatches * kSamples));
  }
  return b;
}

}  // namespace

int main() {
  const fccl::UniqueId id = *fccl::unique_id();
  std::array<float, 2> weights{};
  auto run = [&](int rank) {
    auto communicator = *fccl::Communicator::join(id, rank, 2, {.name = "pipeline"});
    weights[static_cast<std::size_t>(rank)] = rank == 0 ? first_stage(communicator) : last_stage(communicator);
  };
  {
    std::jthread other(run, 1);  // a process of another host would do the same
    run(0);
  }
  std::printf("a b = %.2f, wanted 6\n", weights[0] * weights[1]);
  return weights[0] * weights[1] > 5.5f && weights[0] * weights[1] < 6.5f ? 0 : 1;
}
