// fcclMemAlloc as tensors, and as torch's allocator of CPU memory.
#include "arena.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>

#include "fccl/fccl.h"

namespace fccl::torch {
namespace {

// Smaller tensors go by mailbox, which copies them anyway.
constexpr size_t kLeastBytes = size_t{16} << 10;

// Returns null if the library cannot give memory.
void* arena_memory(size_t bytes) {
  void* memory = nullptr;
  if (fcclMemAlloc(&memory, bytes) == fcclSuccess) return memory;
  TORCH_WARN_ONCE("fccl: tensors take torch's own memory, which peers do not map: ", fcclGetLastError(nullptr));
  return nullptr;
}

// Frees memory of the arena; a forked child's is a copy, which the library recognizes.
void free_arena_memory(void* memory) { static_cast<void>(fcclMemFree(memory)); }

class ArenaAllocator final : public c10::Allocator {
 public:
  explicit ArenaAllocator(c10::Allocator& plain) : plain_(plain) {}

  c10::DataPtr allocate(size_t bytes) override {
    void* memory = bytes < kLeastBytes ? nullptr : arena_memory(bytes);
    if (memory == nullptr) return plain_.allocate(bytes);
    return {memory, memory, free_arena_memory, c10::kCPU};
  }
  // torch asks for one function for all memory of an allocator.
  c10::DeleterFnPtr raw_deleter() const override { return free_any; }
  void copy_data(void* target, const void* source, size_t bytes) const override { default_copy_data(target, source, bytes); }

 private:
  static void free_any(void* memory) {
    if (fcclMemFree(memory) != fcclSuccess) c10::GetDefaultCPUAllocator()->raw_deallocate(memory);
  }

  c10::Allocator& plain_;
};

}  // namespace

at::Tensor arena_tensor(int64_t count, const at::TensorOptions& options) {
  const size_t bytes = static_cast<size_t>(count) * options.dtype().itemsize();
  void* memory = bytes == 0 ? nullptr : arena_memory(bytes);
  if (memory == nullptr) return at::empty({count}, options);
  return at::from_blob(memory, {count}, free_arena_memory, options);
}

void allocate_cpu_tensors_in_arena() {
  // The allocator is never freed: tensors free their memory through it as long as the process lives.
  static auto* allocator = new ArenaAllocator(*c10::GetDefaultCPUAllocator());
  // The priority is above that of torch's own allocator, 0.
  c10::SetCPUAllocator(allocator, 1);
}

}  // namespace fccl::torch
