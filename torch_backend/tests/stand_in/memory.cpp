// Keeps freed blocks by size and stream, so that the next allocation takes them while earlier work still runs.
#include "memory.h"

#include <map>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "driver.h"
#include "streams.h"

namespace stand_in {
namespace {

using Pool = std::pair<uint64_t, size_t>;  // a stream, and a size

struct Blocks {
  std::mutex mutex;
  std::map<void*, Pool> pool_of;
  std::map<Pool, std::vector<void*>> free;
  std::set<void*> held;  // recorded on a stream
  int64_t reused = 0;

  static Blocks& of_process() {
    static auto* const blocks = new Blocks;
    return *blocks;
  }
};

void give_back(void* address) {
  auto& blocks = Blocks::of_process();
  const std::lock_guard lock(blocks.mutex);
  if (blocks.held.count(address) == 0) blocks.free[blocks.pool_of.at(address)].push_back(address);
}

void* take(size_t bytes) {
  const c10::Device device(c10::kPrivateUse1, current_device());
  const Pool pool{current(device).hash(), (bytes + 511) / 512 * 512};
  auto& blocks = Blocks::of_process();
  const std::lock_guard lock(blocks.mutex);
  auto& free = blocks.free[pool];
  if (!free.empty()) {
    void* const address = free.back();
    free.pop_back();
    ++blocks.reused;
    return address;
  }
  CUdeviceptr made = 0;
  check(driver().allocate(&made, pool.second), "cuMemAlloc");
  auto* const address = reinterpret_cast<void*>(made);
  blocks.pool_of.emplace(address, pool);
  return address;
}

class StreamOrderedAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    const c10::Device device(c10::kPrivateUse1, current_device());
    if (bytes == 0) return {nullptr, nullptr, &give_back, device};
    void* const address = take(bytes);
    return {address, address, &give_back, device};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &give_back; }
  void copy_data(void* to, const void* from, size_t bytes) const override { copy_bytes(to, from, bytes, false); }
};

}  // namespace

c10::Allocator& allocator() {
  static auto* const allocator = new StreamOrderedAllocator;
  return *allocator;
}

void record_on_stream(const c10::DataPtr& pointer, const c10::Stream& stream) {
  auto& blocks = Blocks::of_process();
  const std::lock_guard lock(blocks.mutex);
  const auto block = blocks.pool_of.find(pointer.get_context());
  if (block != blocks.pool_of.end() && block->second.first != stream.hash()) blocks.held.insert(block->first);
}

int64_t reused_blocks() {
  auto& blocks = Blocks::of_process();
  const std::lock_guard lock(blocks.mutex);
  return blocks.reused;
}

void copy_bytes(void* to, const void* from, size_t bytes, bool touches_host) {
  if (bytes == 0) return;
  const CUstream stream = native(current({c10::kPrivateUse1, current_device()}));
  const auto target = reinterpret_cast<CUdeviceptr>(to);
  const auto source = reinterpret_cast<CUdeviceptr>(from);
  if (!touches_host) return check(driver().copy(target, source, bytes, stream), "cuMemcpyAsync");
  // The host's memory is not pinned.
  check(driver().synchronize_stream(stream), "cuStreamSynchronize");
  check(driver().copy_at_once(target, source, bytes), "cuMemcpy");
}

void copy_rows(Rows to, Rows from, size_t bytes, size_t rows) {
  CUDA_MEMCPY2D copy{};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
  copy.srcDevice = reinterpret_cast<CUdeviceptr>(from.address);
  copy.srcPitch = from.pitch;
  copy.dstDevice = reinterpret_cast<CUdeviceptr>(to.address);
  copy.dstPitch = to.pitch;
  copy.WidthInBytes = bytes;
  copy.Height = rows;
  check(driver().copy_rows(&copy, native(current({c10::kPrivateUse1, current_device()}))), "cuMemcpy2DAsync");
}

}  // namespace stand_in
