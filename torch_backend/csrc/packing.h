// Packing: copies between a tensor of any strides and memory in which its elements follow one another.
#pragma once

#include <ATen/ATen.h>

#include <cstddef>
#include <vector>

namespace fccl::torch {

// Keeps a tensor's memory layout as it was when this was made, and the address of the packed elements. It keeps neither memory
// alive. It runs no code of torch, so the library's worker may use it; only one thread may use it at a time.
class Packing {
 public:
  Packing(const at::Tensor& tensor, void* packed);

  // Copies from the tensor to the packed elements.
  void pack() const;
  // Copies back. If elements share memory, the last one stays.
  void unpack() const;

 private:
  struct Dimension {
    size_t size;
    ptrdiff_t step;  // in bytes
  };
  enum class Way { pack, unpack };

  void copy(size_t dimensions, char* from_tensor, char*& packed, Way way) const;

  char* tensor_;
  char* packed_;
  size_t bytes_;
  size_t run_;                         // bytes that are contiguous in both
  std::vector<Dimension> dimensions_;  // dimensions of the runs, the innermost first
};

}  // namespace fccl::torch
