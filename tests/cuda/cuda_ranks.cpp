// Ranks on simulated GPUs.
#include "cuda/cuda_ranks.h"

#include <algorithm>
#include <cstring>
#include <thread>

namespace fccl::core::testing {

using simulated::SimulatedGpu;

namespace {

constexpr size_t kChunk = size_t{1} << 20;
constexpr std::byte kUntouched{0xa7};

}  // namespace

CudaSeat::CudaSeat(const Seat& seat, std::shared_ptr<SimulatedGpu> gpu)
    : seat_(seat), gpu_(std::move(gpu)), stream_(gpu_->make_user_queue()) {
  gpu_->load(CudaTrial::put(nullptr));
}

void CudaSeat::hold() {
  held_ = std::make_shared<std::atomic<bool>>(true);
  gpu_->launch(stream_, [held = held_] {
    while (*held) std::this_thread::sleep_for(std::chrono::microseconds(100));
  });
}

void CudaSeat::release() {
  if (held_) *held_ = false;
}

std::byte* CudaSeat::take(size_t bytes) {
  bytes = (bytes + 255) / 256 * 256;
  auto chunk = std::ranges::find_if(free_, [&](const Chunk& free) { return free.bytes >= bytes; });
  if (chunk == free_.end()) {
    const size_t size = std::max(bytes, kChunk);
    chunks_.push_back({gpu_->allocate(MemoryPlace::this_device, size), size});
    free_.push_back(chunks_.back());
    chunk = free_.end() - 1;
  }
  std::byte* const taken = chunk->begin;
  chunk->begin += bytes;
  chunk->bytes -= bytes;
  gpu_->write(taken, std::vector<std::byte>(bytes, kUntouched));
  return taken;
}

std::vector<int32_t> CudaSeat::read(const std::byte* buffer, size_t count) const {
  std::vector<int32_t> values(count);
  gpu_->read(buffer, std::as_writable_bytes(std::span(values)));
  return values;
}

void run_on_gpus(const OnGpus& on, const std::function<void(CudaSeat&)>& body) {
  simulated::uninstall_all();
  const auto install = [&](int ordinal, uint64_t seed) {
    simulated::GpuOptions options = on.options;
    options.ordinal = ordinal;
    options.seed += seed;
    // Ranks that share a GPU in one process need them, as the pages say.
    if (on.host_of.empty() && on.ranks > on.gpus) options.connections = 32;
    auto gpu = std::make_shared<SimulatedGpu>(options);
    simulated::install(gpu);
    return gpu;
  };
  const auto run = [&](const Seat& seat, std::shared_ptr<SimulatedGpu> gpu) {
    simulated::set_current_device(gpu->limits().ordinal);
    CudaSeat own(seat, std::move(gpu));
    body(own);
    own.release();
  };
  if (!on.host_of.empty()) {
    run_ranks({RanksAs::processes, on.ranks, on.killed, SIGKILL, on.limit, on.host_of},
              [&](const Seat& seat) { run(seat, install(0, static_cast<uint64_t>(seat.rank))); });
    return;
  }
  std::vector<std::shared_ptr<SimulatedGpu>> gpus;
  for (int i = 0; i < on.gpus; ++i) gpus.push_back(install(i, static_cast<uint64_t>(i)));
  run_ranks({.as = RanksAs::threads, .ranks = on.ranks, .limit = on.limit},
            [&](const Seat& seat) { run(seat, gpus[static_cast<size_t>(seat.rank % on.gpus)]); });
  simulated::uninstall_all();
}

fcclConfig_t config_of_cuda_tests() {
  fcclConfig_t config = config_of_tests();
  config.memoryKind = fcclMemoryCuda;
  return config;
}

CudaTrial::CudaTrial(const Recipe& recipe, CudaSeat& seat, bool scalar_on_gpu, Placement placement)
    : seat_(seat), trial_(recipe, seat.rank(), seat.ranks(), std::move(placement)), scalar_(trial_.factor_of(seat.rank())) {
  for (size_t i = 0; i < 2; ++i)
    if (!trial_.memory()[i].empty()) elsewhere_.buffers[i] = seat.take(trial_.memory()[i].size());
  if (scalar_on_gpu) elsewhere_.scalar = seat.take(sizeof scalar_);
}

fcclResult_t CudaTrial::issue(fcclComm_t comm) {
  seat_.gpu().launch(seat_.stream(), put(this));
  return trial_.issue_elsewhere(elsewhere_, comm, seat_.stream().native);
}

std::function<void()> CudaTrial::put(CudaTrial* trial) {
  return [trial] {
    const Elsewhere& to = trial->elsewhere_;
    for (size_t i = 0; i < 2; ++i)
      if (const auto here = trial->trial_.memory()[i]; !here.empty())
        std::memcpy(simulated::real(to.buffers[i]), here.data(), here.size());
    if (to.scalar != nullptr) std::memcpy(simulated::real(to.scalar), &trial->scalar_, sizeof trial->scalar_);
  };
}

std::string CudaTrial::fault() {
  for (size_t i = 0; i < 2; ++i)
    if (const auto here = trial_.memory()[i]; !here.empty()) seat_.gpu().read(elsewhere_.buffers[i], here);
  return trial_.fault();
}

std::string try_on_gpu(const Recipe& recipe, CudaSeat& seat, fcclComm_t comm, bool scalar_on_gpu) {
  seat.reset();
  CudaTrial trial(recipe, seat, scalar_on_gpu);
  const fcclResult_t result = trial.issue(comm);
  seat.gpu().synchronize(seat.stream());
  if (result != fcclSuccess) return describe(recipe) + ": " + fcclGetErrorString(result) + ": " + fcclGetLastError(nullptr);
  fcclResult_t state = fcclSuccess;
  if (fcclCommGetAsyncError(comm, &state); state != fcclSuccess) return describe(recipe) + ": " + fcclGetLastError(comm);
  return trial.fault();
}

void expect_every_collective(CudaSeat& seat, std::span<const size_t> counts) {
  const Comm comm(seat.seat(), config_of_cuda_tests());
  int iteration = 0;
  for (const fcclColl_t collective : kEveryCollective)
    for (const size_t count : counts)
      for (const bool in_place : {false, true})
        EXPECT_EQ(try_on_gpu({.collective = collective,
                              .dtype = fcclFloat32,
                              .count = count,
                              .root = ++iteration % seat.ranks(),
                              .in_place = in_place,
                              .misalignment = static_cast<size_t>(iteration % 4),
                              .iteration = iteration},
                             seat, comm),
                  "");
}

}  // namespace fccl::core::testing
