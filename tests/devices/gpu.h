// Gpu: a simulated GPU with what CUDA's driver makes of it: memory, queues that are threads, marks, words; and the driver's bad
// habits. It gives no order between queues, nor from a queue to the host, but by words, awaited marks, and a queue or mark that
// says it is done, so that the thread sanitizer finds who lacks one.
//
// SimulatedGpu is the Device over it, the fake driver CUDA's interface over it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "device/device.h"
#include "devices/address_space.h"
#include "devices/channel.h"
#include "devices/gpu_options.h"
#include "devices/refusal.h"

namespace fccl::core::simulated {

// One record of a mark: what is awaited.
struct Record {
  std::atomic<bool> done{false};
  std::atomic<int64_t> at_ns{0};  // once done
  Record* older = nullptr;
};

// An event.
struct GpuMark {
  UnseenPointer latest;
  GpuMark* older = nullptr;
};

// The maker owns it; destroying it frees all that it made, and outstanding operations are dropped. Any thread may
// call; the calls that want the GPU to be current there say so by a Refusal.
class Gpu {
 public:
  explicit Gpu(const GpuOptions& options);
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;
  ~Gpu();

  const GpuOptions& options() const { return progress_.options; }

  // The calling thread's GPUs, the last of which is current. Calls on behalf of a test are not counted, and no fault fails
  // them.
  enum class Caller : uint8_t { library, test };
  static void push_current(Gpu* gpu, Caller caller = Caller::library);
  static Gpu* pop_current();
  static Gpu* current();

  // ---- Set up: waits for all that is outstanding and, meanwhile, keeps every other thread waiting that calls this GPU.
  // The GPU's address of it.
  enum class Pins : uint8_t { read_write, read_only };
  Answer<std::byte*> pin(std::span<std::byte> memory, Pins how = Pins::read_write);
  Answer<void> unpin(const std::byte* memory);
  Answer<GpuQueue*> make_queue();
  Answer<GpuMark*> make_mark();
  Answer<void> drop(GpuQueue* queue);
  Answer<void> drop(GpuMark* mark);
  // Memory of users: device, managed or pinned. Only to free it waits.
  Answer<std::byte*> allocate(Region::Kind kind, size_t bytes);
  Answer<void> free(const std::byte* memory);

  // ---- Look. A queue of null is the default one; 1 and 2 are CUDA's names of that and of the thread's own.
  Answer<GpuQueue*> queue_of(const void* native);
  Answer<bool> is_capturing(GpuQueue* queue);
  Answer<bool> is_idle(GpuQueue* queue);
  Answer<bool> is_done(GpuMark* mark);
  // These wait, and keep nobody else from calling.
  Answer<void> synchronize(GpuQueue* queue);
  Answer<void> synchronize(GpuMark* mark);
  Answer<void> synchronize_all();
  // Between two marks that are done.
  Answer<double> seconds_between(GpuMark* from, GpuMark* to);

  // ---- Enqueue: where the queue is full it waits, and keeps every other thread waiting that calls this GPU.
  // Between two places of host memory it returns when it is done, and keeps nobody else from calling.
  Answer<void> copy(GpuQueue* queue, const Copy& copy);
  Answer<void> words(GpuQueue* queue, std::span<const WordOperation> operations);
  Answer<void> record(GpuQueue* queue, GpuMark* mark);
  Answer<void> await(GpuQueue* queue, GpuMark* mark);
  // A kernel: runs on the queue's thread, and finds memory by real().
  Answer<void> launch(GpuQueue* queue, std::function<void()> kernel);
  Answer<void> set_capturing(GpuQueue* queue, bool capturing);

  // ---- For tests
  Progress& progress() { return progress_; }
  void fail_call_after(uint64_t calls) { fails_call_.store(calls_.load() + calls, std::memory_order_relaxed); }
  uint64_t calls() const { return calls_.load(std::memory_order_relaxed); }

 private:
  // Finds memory that may be read or written from the first of `rows` to the end of the last; refuses any other.
  Answer<std::byte*> reach(const char* what, const std::byte* begin, size_t bytes, size_t rows, size_t pitch) const;
  Answer<std::atomic<uint64_t>*> word_at(const std::byte* word) const;
  // The check with which every call begins.
  Answer<void> begin_call(const char* call);
  Answer<void> begin_set_up(const char* call);
  // Once the operation may be enqueued.
  Answer<void> begin_enqueue(const char* call, const GpuQueue* queue);
  void put(GpuQueue* queue, size_t slots, Work work);
  Answer<void> check_mark(const char* call, const GpuMark* mark) const;
  GpuQueue* new_queue();
  GpuQueue* queue_of_thread();
  std::string name() const;

  Progress progress_;
  const uint64_t serial_;  // tells a GPU from one that was made at the same place later
  UnseenDoor door_;
  std::atomic<uint64_t> calls_{0};
  std::atomic<uint64_t> fails_call_;
  std::atomic<uint64_t> queues_made_{0};
  UnseenPointer queues_, marks_, channels_;  // the youngest of each
  Channel* only_channel_ = nullptr;          // of one_queue
  GpuQueue* default_queue_ = nullptr;
};

// The place of the GPU's memory at an address, for the thread of a queue, or for a test. Null for memory that it does not have.
std::byte* real(const void* address);

}  // namespace fccl::core::simulated
