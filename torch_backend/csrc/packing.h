// Packing: copies between a tensor of any strides and memory in which its elements lie one behind the other.
#pragma once

#include <ATen/ATen.h>

#include <cstddef>
#include <vector>

namespace fccl {

// A tensor's memory as it was when this was made, and the place of its elements one behind the other. Keeps neither alive. It
// runs no code of torch, so the library's worker may use it; not two threads at once.
class Packing {
 public:
  Packing(const at::Tensor& tensor, void* packed);

  // From the tensor to the packed elements.
  void pack() const;
  // And back. Where elements share memory, the last one stays.
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
  size_t run_;                         // bytes that lie one behind the other in both
  std::vector<Dimension> dimensions_;  // of runs, the innermost first
};

}  // namespace fccl
