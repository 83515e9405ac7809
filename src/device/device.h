// Device: the interface to one GPU, and the rules for calling it.
//
// There are three kinds of functions, with a rule for each:
//   set up    (pin, make, load, drop) may wait for the GPU's earlier work. So the caller must not hold a lock that another
//             thread needs to release the GPU.
//   look      report the present state, and never wait.
//   enqueue   append an operation to a queue, and return. Only the thread that issues the collective calls them, before the
//             call returns; no other thread of the library ever calls the GPU. A full queue blocks every thread of the
//             process, so the issuing thread counts its entries (DeviceLimits::queue_entries).
// All other communication between GPU and host uses 64-bit words in pinned memory (device/words.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "os/descriptor.h"

namespace fccl::core {

struct Reduction;

// The properties of a device, constant for its whole life.
struct DeviceLimits {
  std::string name;      // "NVIDIA H100 80GB HBM3, compute capability 9.0, driver 13.0"
  std::string bus_id;    // "0000:53:00.0"
  std::string identity;  // equal in two processes that use the same GPU, or the same part of one
  int ordinal = 0;       // the device's number among the process's GPUs
  bool waits_for_words =
      false;                    // true if the GPU has 64-bit stream memory operations; without them only the blocking path runs
  size_t words_per_call = 255;  // the most operations in one call of words()
  size_t queue_entries = 256;   // the most entries outstanding on one queue; a copy, word, record or await is one entry
  size_t most_pitch = 0;        // bytes; a copy of rows with a larger pitch is refused
  bool pins_read_only = false;  // true if pin_read_only works
  bool lends = false;           // true if make_memory, lend and borrow work
  std::string why_no_sums;      // why load and reduce do not work, "" if they do
  bool is_part_of_gpu = false;  // true for an instance into which MIG divides a GPU; instances have the GPU's bus_id
};

// Handles of a stream (the library's or the user's) and of an event. The code that made one drops it.
struct Queue {
  void* native = nullptr;
};
struct Mark {
  void* native = nullptr;
};

// Host memory that the GPU may use until this object is destroyed. The destructor counts as a set-up function but needs no Use.
class PinnedMemory {
 public:
  PinnedMemory() = default;
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;
  virtual ~PinnedMemory() = default;
  // Returns the GPU's address for the host address `host`; the two may differ.
  virtual std::byte* device_address(const void* host) const = 0;
};

// What GPUs other than its own may do with memory that the library has made. A GPU always reads and writes its own.
enum class Access : uint8_t { read, write };

// Memory of a GPU that this library made, or that another process made and lent, at one address for all GPUs of this process.
// It stays until the last process that has it has let it go, even if the one that made it has ended. The destructor counts as a
// set-up function but needs no Use. No queue may be using the memory then.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  virtual ~DeviceMemory() = default;
  virtual std::byte* address() const = 0;
};

// The kind of memory at a user's pointer, judged by its first byte.
enum class MemoryPlace : uint8_t { this_device, other_device, managed, pinned_host, pageable_host };

// A copy of `rows` rows of `bytes` bytes, one row every pitch. A single row needs no pitch. Addresses are the GPU's.
struct Copy {
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  size_t bytes = 0;
  size_t rows = 1;
  size_t to_pitch = 0;
  size_t from_pitch = 0;
};

// An operation on one word, given by its device address, aligned to 8. A wait ends when the word has reached `value`; numbers
// wrap. A write follows all earlier entries of the queue: a host processor that sees the word sees their effects, too.
struct WordOperation {
  enum class Kind : uint8_t { wait_for, write };
  Kind kind = Kind::write;
  std::byte* word = nullptr;
  uint64_t value = 0;
};

// One per process and GPU, shared by the process's communicators. Any thread may call, but only one thread at a time may use a
// queue. The caller holds a Use for every function but limits(), may_reach() and place_of(). Any function may report the error
// of earlier work on this GPU, from any of its users; that error is final.
class Device {
 public:
  // Makes the device current on the calling thread, and restores the previous device at its end. Each call of the C interface
  // makes one Use, not each operation.
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
  // Pins whole pages that the library itself mapped and that no other PinnedMemory of this process covers.
  virtual Result<std::unique_ptr<PinnedMemory>> pin(std::span<std::byte> memory) = 0;
  // Likewise pins pages that the process may only read, such as those of a peer. The GPU may only read them, too.
  virtual Result<std::unique_ptr<PinnedMemory>> pin_read_only(std::span<const std::byte> memory) = 0;
  // Makes memory of this GPU, of at least so many bytes.
  virtual Result<std::unique_ptr<DeviceMemory>> make_memory(size_t bytes) = 0;
  // Returns a descriptor of memory that make_memory made, by which another process borrows it. The descriptor is
  // not a file that the other process can open: a socket carries it there.
  virtual Result<Descriptor> lend(const DeviceMemory& memory) = 0;
  // Maps memory that another process has lent, for this GPU to read, or to write, too. It takes no hold of the descriptor.
  virtual Result<std::unique_ptr<DeviceMemory>> borrow(const Descriptor& lent, size_t bytes, Access access) = 0;
  // Lets this GPU use memory that another GPU of this process has made or borrowed.
  virtual Result<void> share(const DeviceMemory& memory, Access access) = 0;
  // Loads the kernels of all sums of so many sources, 2 to 8. No first launch of one waits for the GPU then.
  virtual Result<void> load(size_t sources) = 0;
  // The queue and the default stream do not wait for each other.
  virtual Result<Queue> make_queue() = 0;
  virtual Result<Mark> make_mark() = 0;
  // Entries that are still on the queue run to their end.
  virtual void drop(Queue queue) = 0;
  virtual void drop(Mark mark) = 0;

  // ---- Look
  // False if the driver says that this GPU cannot read memory of the GPU with this bus_id. It knows only those that this
  // process can see; whether this GPU reads memory of another one shows when it borrows.
  virtual bool may_reach(const std::string& bus_id) const = 0;
  virtual MemoryPlace place_of(const void* pointer) const = 0;
  // True if a user's stream belongs to this device; null, the default stream, does.
  virtual Result<bool> owns(Queue queue) const = 0;
  // True if the queue records a graph. Nothing may be enqueued then.
  virtual Result<bool> is_capturing(Queue queue) const = 0;
  // True if all entries of the queue are done.
  virtual Result<bool> is_idle(Queue queue) const = 0;

  // ---- Enqueue
  virtual Result<void> copy(Queue queue, const Copy& copy) = 0;
  // Enqueues the kernel of a sum, which has been loaded.
  virtual Result<void> reduce(Queue queue, const Reduction& reduction) = 0;
  // Enqueues the operations in this order.
  virtual Result<void> words(Queue queue, std::span<const WordOperation> operations) = 0;
  // Sets the mark behind the queue's present entries. A queue that awaits the mark waits for them.
  virtual Result<void> record(Queue queue, Mark mark) = 0;
  virtual Result<void> await(Queue queue, Mark mark) = 0;

 private:
  virtual Result<void> enter() = 0;
  virtual void leave() = 0;
};

// Opens the process's GPU number `ordinal`. Loads the driver; no other function of the library does. Errors: fcclSystemError
// ("built without CUDA", "no driver" or "no GPU"), fcclInvalidArgument for a number out of range.
Result<std::shared_ptr<Device>> open_device(int ordinal);
// Returns the number of the calling thread's current GPU, or -1. Neither loads nor initialises the driver.
int current_device();

}  // namespace fccl::core
