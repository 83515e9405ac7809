// Device: one GPU as the rooms above see it, and the laws by which they use it.
//
// Three kinds of functions, and a law for each:
//   set up    pin, create, drop: may wait for whatever the GPU has been given, so never while a lock is held that
//             another thread needs to release the GPU.
//   look      say what is known now, and never wait.
//   enqueue   put an operation on a queue, behind what is there, and return. Called on the thread that issues the collective,
//             before the call returns, and by no other thread: nobody else of the library ever calls the GPU. A queue that is
//             full blocks every thread of the process, so whoever enqueues keeps count (DeviceLimits::queue_entries).
// All else between GPU and host goes by 64-bit words in pinned memory (device/words.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"

namespace fccl {

// The same for the device's whole life.
struct DeviceLimits {
  std::string name;              // "NVIDIA H100 80GB HBM3, compute capability 9.0, driver 13.0"
  std::string bus_id;            // "0000:53:00.0"
  std::string identity;          // equal for two processes that use the same GPU, or the same part of one
  int ordinal = 0;               // among the process's GPUs
  bool waits_for_words = false;  // has 64-bit stream memory operations; without them only the blocking path runs
  size_t words_per_call = 255;   // the most operations of one words()
  size_t queue_entries = 256;    // the most that its users may have on one queue; a copy, word, record or await is one
  size_t most_pitch = 0;         // bytes; a copy of rows with a larger pitch is refused
};

// A stream, the library's or the user's; an event. Values: whoever made one drops it.
struct Queue {
  void* native = nullptr;
};
struct Mark {
  void* native = nullptr;
};

// Host memory that the GPU may use, until destroyed, which is a set-up function, but needs no Use.
class PinnedMemory {
 public:
  PinnedMemory() = default;
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;
  virtual ~PinnedMemory() = default;
  // Where the GPU finds what the host has at `host`; it may be another number.
  virtual std::byte* device_address(const void* host) const = 0;
};

// Whose memory a pointer of the user points to, by its first byte.
enum class MemoryPlace : uint8_t { this_device, other_device, managed, pinned_host, pageable_host };

// `rows` runs of `bytes`, one every pitch; one row needs no pitch. Addresses are those of the GPU.
struct Copy {
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  size_t bytes = 0;
  size_t rows = 1;
  size_t to_pitch = 0;
  size_t from_pitch = 0;
};

// On one word, by its device address, aligned to 8. A wait is over when the word, read as a number that wraps, has come to
// `value`. A write comes after all that is before it on the queue, whose effects every processor of the host sees once it sees
// the word.
struct WordOperation {
  enum class Kind : uint8_t { wait_for, write };
  Kind kind = Kind::write;
  std::byte* word = nullptr;
  uint64_t value = 0;
};

// One per process and GPU, shared by its communicators. Any thread may call, a queue one thread at a time. Every function but
// limits() and the look at a place wants a Use on the calling thread. An error of any function may be an earlier one of
// anybody's work on this GPU: it is then the GPU's last word, and final.
class Device {
 public:
  // Makes the device the calling thread's current one, and gives back on its end what was current before. Once per call of the
  // C interface, not per operation.
  class Use {
   public:
    explicit Use(Device& device) : device_(device), entered_(device.enter()) {}
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    ~Use() {
      if (entered_) device_.leave();
    }
    const Result<void>& entered() const { return entered_; }

   private:
    Device& device_;
    Result<void> entered_;
  };

  Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  virtual ~Device() = default;

  virtual const DeviceLimits& limits() const = 0;

  // ---- Set up
  // Whole pages of the library's own mmap, which no other PinnedMemory of this process has.
  virtual Result<std::unique_ptr<PinnedMemory>> pin(std::span<std::byte> memory) = 0;
  // It does not wait for the default stream, nor that for it.
  virtual Result<Queue> make_queue() = 0;
  virtual Result<Mark> make_mark() = 0;
  // What is still on the queue runs on.
  virtual void drop(Queue queue) = 0;
  virtual void drop(Mark mark) = 0;

  // ---- Look
  virtual MemoryPlace place_of(const void* pointer) const = 0;
  // Whether a stream of the user's belongs to this device: null, the default stream, does.
  virtual Result<bool> owns(Queue queue) const = 0;
  // Whether the queue records a graph, in which case nothing may be enqueued.
  virtual Result<bool> is_capturing(Queue queue) const = 0;
  // Whether all that was enqueued is done.
  virtual Result<bool> is_idle(Queue queue) const = 0;

  // ---- Enqueue
  virtual Result<void> copy(Queue queue, const Copy& copy) = 0;
  // In this order.
  virtual Result<void> words(Queue queue, std::span<const WordOperation> operations) = 0;
  // What is on the queue now is what whoever awaits the mark waits for.
  virtual Result<void> record(Queue queue, Mark mark) = 0;
  virtual Result<void> await(Queue queue, Mark mark) = 0;

 private:
  virtual Result<void> enter() = 0;
  virtual void leave() = 0;
};

// The GPU with this place among the process's. Loads the driver, which no other function of the library does. Error:
// fcclSystemError, "built without CUDA", "no driver" or "no GPU"; fcclInvalidArgument for a place that there is not.
Result<std::shared_ptr<Device>> open_device(int ordinal);
// The place of the GPU that is current in the calling thread, or -1. Never loads the driver, nor initialises it.
int current_device();

}  // namespace fccl
