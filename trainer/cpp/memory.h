// Counts the bytes of the tensors that the trainer holds, so that a test can see that they are a rank's share.
#pragma once

#include <torch/types.h>

#include <algorithm>

namespace trainer {

// Memory for tensors of one kind, an allocator of torch that keeps count. Outlives its tensors; the thread that trains uses it.
class CountedMemory : public c10::Allocator {
 public:
  torch::Tensor zeros(int64_t count, torch::Dtype dtype) {
    const size_t bytes = static_cast<size_t>(count) * c10::elementSize(dtype);
    const c10::Storage storage(c10::Storage::use_byte_size_t(), bytes, allocate(bytes), this, /*resizable=*/true);
    return torch::empty({0}, dtype).set_(storage, 0, {count}, {1}).zero_();
  }

  // Gives the memory under a tensor and all its views back, and gets some again: the tensors stay as they are meanwhile, in the
  // graph of the backward pass too.
  static void release(const torch::Tensor& tensor) {
    tensor.storage().unsafeGetStorageImpl()->set_data_ptr_noswap(at::DataPtr(nullptr, c10::kCPU));
  }
  void renew(const torch::Tensor& tensor) {
    auto* storage = tensor.storage().unsafeGetStorageImpl();
    storage->set_data_ptr_noswap(allocate(storage->nbytes()));
  }

  // The most bytes that tensors have held at a time.
  size_t most() const { return most_; }

  at::DataPtr allocate(size_t bytes) override {
    auto* block = new Block{c10::GetAllocator(c10::kCPU)->allocate(bytes), &held_, bytes};
    most_ = std::max(most_, held_ += bytes);
    return {block->memory.get(), block, free, c10::kCPU};
  }
  void copy_data(void* target, const void* source, size_t bytes) const override { default_copy_data(target, source, bytes); }

 private:
  // The facts that a tensor's memory needs when it is freed.
  struct Block {
    at::DataPtr memory;
    size_t* held;
    size_t bytes;
  };
  static void free(void* context) {
    auto* block = static_cast<Block*>(context);
    *block->held -= block->bytes;
    delete block;
  }

  size_t held_ = 0, most_ = 0;
};

}  // namespace trainer
