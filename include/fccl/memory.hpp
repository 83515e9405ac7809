// Memory that peers map, owned in C++: fcclMemAlloc and fcclMemFree behind an array of elements, and how much this process has
// of it.
//
//   auto gradients = fccl::ArenaArray<float>::make(n);
//   if (!gradients) return report(gradients.error().message);
//   if (auto done = communicator->all_reduce(*gradients, *gradients, fccl::avg); !done) return report(done.error().message);
#pragma once

#include <fccl/fccl.hpp>
#include <limits>

namespace fccl {

// Elements in memory that the other ranks of a host read in place (fcclMemAlloc in fccl.h says when that pays). A range like
// std::vector, of a fixed number of elements, which begin without a value. Move only; one thread at a time. It must live until
// the collectives on it are done, and may outlive its communicators.
template <class T>
  requires std::is_trivially_copyable_v<T>
class ArenaArray {
 public:
  ArenaArray() = default;
  static Result<ArenaArray> make(std::size_t count) {
    if (count > std::numeric_limits<std::size_t>::max() / sizeof(T))
      return invalid_argument("so many elements are more than memory can hold");
    void* memory = nullptr;
    if (auto allocated = result_of(fcclMemAlloc(&memory, count * sizeof(T))); !allocated) return allocated.error();
    return ArenaArray(static_cast<T*>(memory), count);
  }

  T* data() { return memory_.get(); }
  const T* data() const { return memory_.get(); }
  std::size_t size() const { return memory_ ? count_ : 0; }
  T* begin() { return data(); }
  const T* begin() const { return data(); }
  T* end() { return data() + size(); }
  const T* end() const { return data() + size(); }
  T& operator[](std::size_t index) { return data()[index]; }
  const T& operator[](std::size_t index) const { return data()[index]; }

 private:
  struct Free {
    void operator()(T* memory) const { static_cast<void>(fcclMemFree(memory)); }
  };
  ArenaArray(T* memory, std::size_t count) : memory_(memory), count_(count) {}

  std::unique_ptr<T, Free> memory_;
  std::size_t count_ = 0;
};

// Says how much the arena of this process holds.
inline Result<fcclMemUsage_t> arena_usage() {
  fcclMemUsage_t usage{};
  usage.size = sizeof usage;
  if (auto asked = result_of(fcclMemGetUsage(&usage)); !asked) return asked.error();
  return usage;
}

}  // namespace fccl
