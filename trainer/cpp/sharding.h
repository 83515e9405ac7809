// Fully sharded data parallelism: every rank keeps a part of each layer, and gathers a layer only while it computes with it.
#pragma once

#include <torch/types.h>

#include <fccl/fccl.hpp>
#include <optional>
#include <vector>

#include "memory.h"
#include "model.h"

namespace trainer {

// Throws what fccl says went wrong.
inline void must(const fccl::Result<void>& result) {
  if (!result) throw std::runtime_error(result.error().message);
}

// One layer as one row of numbers, padded so that it is cut into equal shards.
struct Layer {
  int64_t size = 0;                       // elements of the row, without the padding
  torch::Tensor shard;                    // this rank's parameters
  torch::Tensor gradient;                 // the shard's gradient, the mean over the ranks
  torch::Tensor row;                      // all ranks' parameters; has memory only from gather to release
  std::vector<torch::Tensor> parameters;  // views of the row, as the model takes them
  torch::Tensor row_gradient;             // this rank's gradient of the row, from before the backward pass until it is reduced
};

// Bytes that this rank has held at most.
struct Held {
  size_t parameters, gradients;  // shards
  size_t rows, row_gradients;    // bytes of whole layers
};

// The layers of one model on one rank. One thread uses it. Communication goes on two streams, so that a layer is gathered and
// another one's gradient is reduced while a third one computes. After a failure, which is thrown, it is only good to be
// destroyed.
class Sharding {
 public:
  // Every rank begins with the same first values, one layer at a time.
  // Without `overlaps` there is one whole layer at a time, since use gathers it and reduce waits.
  Sharding(const Llama& model, fccl::Communicator& communicator, bool overlaps);
  ~Sharding();
  Sharding(const Sharding&) = delete;

  int layers() const { return static_cast<int>(layers_.size()); }
  Layer& layer(int index) { return layers_[static_cast<size_t>(index)]; }
  fccl::Communicator& communicator() const { return communicator_; }

  // Begins to gather a layer, if calls overlap; use waits for it. At most two layers may be gathered at a time.
  void gather(int index);
  const std::vector<torch::Tensor>& use(int index);
  void release(int index);
  // Between the two a backward pass adds up the gradients of a layer's parameters. reduce begins to reduce them, and waits for
  // the reduction before it; finish_reducing waits for the last one.
  void expect_gradient(int index);
  void reduce(int index);
  void finish_reducing();

  // The sum over all ranks, in place.
  void sum(torch::Tensor& values);
  Held held() const;

 private:
  void begin_gathering(Layer& layer);

  fccl::Communicator& communicator_;
  bool overlaps_;
  fccl::Stream gathers_, reductions_;
  CountedMemory shard_memory_, gradient_memory_, row_memory_, row_gradient_memory_;
  std::vector<Layer> layers_;
  std::optional<int> reducing_;
};

}  // namespace trainer
