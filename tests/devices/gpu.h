// Gpu: a simulated GPU with what CUDA's driver makes of it: queues that are threads, marks, and what is enqueued; and the
// driver's bad habits. It gives no order between queues, nor from a queue to the host, but by words, awaited marks, and a queue
// or mark that says it is done, so that the thread sanitizer finds who lacks one.
//
// SimulatedGpu is the Device over it, the fake driver CUDA's interface over it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "device/device.h"
#include "devices/channel.h"
#include "devices/connections.h"
#include "devices/gpu_context.h"
#include "devices/gpu_memory.h"
#include "devices/gpu_options.h"
#include "devices/refusal.h"
#include "devices/unseen.h"

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

// The queues and marks of one GPU; its context tells who may call, its memory where operations read and write. The maker owns
// it; destroying it frees all that it made, and outstanding operations are dropped. Any thread may call; the calls that want
// the GPU to be current there say so by a Refusal.
class Gpu {
 public:
  explicit Gpu(const GpuOptions& options);
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;
  ~Gpu();

  const GpuOptions& options() const { return progress_.options; }
  GpuContext& context() { return context_; }
  GpuMemory& memory() { return memory_; }

  // ---- Set up: waits for all that is outstanding and, meanwhile, keeps every other thread waiting that calls this GPU.
  Answer<GpuQueue*> make_queue();
  Answer<GpuMark*> make_mark();
  Answer<void> drop(GpuQueue* queue);
  Answer<void> drop(GpuMark* mark);

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
  // Waits, if the kernel was not loaded before, for all that is outstanding, and keeps every other thread waiting that calls
  // this GPU.
  Answer<void> load(size_t kernel);
  // A kernel that is loaded, or what needs none: runs on the queue's thread, and finds memory by real(). What it writes by
  // store() is kept back as a copy's bytes are.
  Answer<void> launch(GpuQueue* queue, std::function<void()> kernel);
  // Loads the kernel of this number first, if the GPU loads lazily and nobody did before.
  Answer<void> launch(GpuQueue* queue, size_t number, std::function<void()> kernel);
  Answer<void> set_capturing(GpuQueue* queue, bool capturing);

  // The state of its operations, which tests look at and change.
  Progress& progress() { return progress_; }

 private:
  // Once the operation may be enqueued.
  Answer<void> begin_enqueue(const char* call, const GpuQueue* queue);
  // Until all that is on it now is done.
  void wait_for(GpuQueue* queue);
  void put(GpuQueue* queue, Way way, Work work);
  Answer<void> check_mark(const char* call, const GpuMark* mark) const;
  GpuQueue* new_queue();
  GpuQueue* queue_of_thread();

  Progress progress_;
  GpuContext context_;
  GpuMemory memory_;
  const uint64_t serial_;  // tells a GPU from one that was made at the same place later
  std::atomic<uint64_t> queues_made_{0};
  UnseenPointer queues_, marks_, channels_;  // the youngest of each
  Connections connections_;
  GpuQueue* default_queue_ = nullptr;
};

}  // namespace fccl::core::simulated
