// Merges dimensions into runs, and copies them.
#include "packing.h"

#include <cstdint>
#include <cstring>

namespace fccl::torch {
namespace {

// Runs of a known size are copied by one instruction instead of a call.
template <size_t run>
void copy_runs(char* to, ptrdiff_t to_step, const char* from, ptrdiff_t from_step, size_t count) {
  for (size_t i = 0; i < count; ++i, to += to_step, from += from_step) std::memcpy(to, from, run);
}

}  // namespace

Packing::Packing(const at::Tensor& tensor, void* packed)
    : tensor_(static_cast<char*>(tensor.data_ptr())),
      packed_(static_cast<char*>(packed)),
      bytes_(tensor.nbytes()),
      run_(tensor.itemsize()) {
  for (int64_t index = tensor.dim() - 1; index >= 0; --index) {
    const auto size = static_cast<size_t>(tensor.size(index));
    const ptrdiff_t step = tensor.stride(index) * static_cast<ptrdiff_t>(tensor.itemsize());
    if (size == 1) continue;
    if (dimensions_.empty() && step == static_cast<ptrdiff_t>(run_)) {
      run_ *= size;
    } else if (!dimensions_.empty() && step == dimensions_.back().step * static_cast<ptrdiff_t>(dimensions_.back().size)) {
      dimensions_.back().size *= size;
    } else {
      dimensions_.push_back({size, step});
    }
  }
}

void Packing::pack() const {
  if (bytes_ == 0) return;
  char* packed = packed_;
  copy(dimensions_.size(), tensor_, packed, Way::pack);
}

void Packing::unpack() const {
  if (bytes_ == 0) return;
  char* packed = packed_;
  copy(dimensions_.size(), tensor_, packed, Way::unpack);
}

void Packing::copy(size_t dimensions, char* tensor, char*& packed, Way way) const {
  const bool packs = way == Way::pack;
  if (dimensions == 0) {
    std::memcpy(packs ? packed : tensor, packs ? tensor : packed, run_);
    packed += run_;
    return;
  }
  const auto [size, step] = dimensions_[dimensions - 1];
  const auto run = static_cast<ptrdiff_t>(run_);
  const auto copy_row = [&](auto copy_them) {
    if (packs) {
      copy_them(packed, run, tensor, step, size);
    } else {
      copy_them(tensor, step, packed, run, size);
    }
    packed += run_ * size;
  };
  if (dimensions == 1 && run_ == 1) return copy_row(copy_runs<1>);
  if (dimensions == 1 && run_ == 2) return copy_row(copy_runs<2>);
  if (dimensions == 1 && run_ == 4) return copy_row(copy_runs<4>);
  if (dimensions == 1 && run_ == 8) return copy_row(copy_runs<8>);
  if (dimensions == 1 && run_ == 16) return copy_row(copy_runs<16>);
  for (size_t i = 0; i < size; ++i, tensor += step) copy(dimensions - 1, tensor, packed, way);
}

}  // namespace fccl::torch
