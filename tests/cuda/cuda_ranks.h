// CudaRanks: ranks with simulated GPUs, and trials of collectives in their memory.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "devices/installed_gpus.h"
#include "processes/ranks.h"
#include "processes/trial.h"

namespace fccl::core::testing {

// The collectives of equal counts.
inline constexpr fcclColl_t kEveryCollective[] = {fcclCollAllReduce, fcclCollBroadcast,     fcclCollReduce,
                                                  fcclCollAllGather, fcclCollReduceScatter, fcclCollGather,
                                                  fcclCollScatter,   fcclCollBarrier,       fcclCollAlltoAll};
// The ways of a call on CUDA memory; FCCL_CUDA_PATH.
inline constexpr const char* kCudaPaths[] = {"blocking", "bounce", "host", "peer"};

struct OnGpus {
  int ranks = 2;
  int gpus = 1;  // which the ranks share in turn
  simulated::GpuOptions options{};
  std::chrono::seconds limit{60};
  std::vector<int> host_of{};  // the host that each rank, then a process with a GPU of its own, takes itself to be on
  std::vector<int> killed{};   // ranks that end by SIGKILL
};

// One rank, whose current GPU this is, with a stream of its own.
class CudaSeat {
 public:
  CudaSeat(const Seat& seat, std::shared_ptr<simulated::SimulatedGpu> gpu);
  CudaSeat(const CudaSeat&) = delete;
  CudaSeat& operator=(const CudaSeat&) = delete;

  const Seat& seat() const { return seat_; }
  int rank() const { return seat_.rank; }
  int ranks() const { return seat_.ranks; }
  void meet() const { seat_.meet(); }
  simulated::SimulatedGpu& gpu() const { return *gpu_; }
  Queue stream() const { return stream_; }
  // Keeps the stream from going on until released.
  void hold();
  void release();

  // Memory of the GPU, poisoned, until reset. None is given back before the GPU is gone: that would wait for the other ranks.
  std::byte* take(size_t bytes);
  void reset() { taken_.clear(), free_.assign(chunks_.begin(), chunks_.end()); }
  // Returns the first `count` values of a buffer. It waits for no stream.
  std::vector<int32_t> read(const std::byte* buffer, size_t count) const;

 private:
  struct Chunk {
    std::byte* begin;
    size_t bytes;
  };
  Seat seat_;
  std::shared_ptr<simulated::SimulatedGpu> gpu_;
  Queue stream_;
  std::shared_ptr<std::atomic<bool>> held_;
  std::vector<Chunk> chunks_, free_, taken_;
};

// Runs the body as ranks; the GPUs are new.
void run_on_gpus(const OnGpus& on, const std::function<void(CudaSeat&)>& body);

fcclConfig_t config_of_cuda_tests();

// A trial whose buffers lie in the memory of the rank's GPU.
class CudaTrial {
 public:
  // `scalar_on_gpu`: the factor of a pre-multiplied sum lies there, too, and is there only when the stream has come to it.
  CudaTrial(const Recipe& recipe, CudaSeat& seat, bool scalar_on_gpu = false, Placement placement = {});
  CudaTrial(const CudaTrial&) = delete;
  CudaTrial& operator=(const CudaTrial&) = delete;

  // The input is put there by the stream, right before the call.
  fcclResult_t issue(fcclComm_t comm);
  // The kernel that puts a trial's input there. A seat loads it, since its first launch would wait for all ranks of the GPU.
  static std::function<void()> put(CudaTrial* trial);
  // When the stream has come to its end: what is wrong, "" if nothing.
  std::string fault();

 private:
  CudaSeat& seat_;
  Trial trial_;
  Elsewhere elsewhere_;
  Scalar scalar_;
};

// Issues, synchronizes, and says what went wrong.
std::string try_on_gpu(const Recipe& recipe, CudaSeat& seat, fcclComm_t comm, bool scalar_on_gpu = false);

// Makes a communicator, and calls every collective with each count, in place and not, misaligned by turns; all must be right.
void expect_every_collective(CudaSeat& seat, std::span<const size_t> counts);

}  // namespace fccl::core::testing
