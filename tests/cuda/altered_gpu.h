// AlteredGpu: a simulated GPU that puts one rank's programs on their queues other than they were meant.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "device/reduction.h"
#include "devices/simulated_gpu.h"

namespace fccl::core::testing {

// One entry of a program, as the library meant it.
struct Entry {
  // Words by what they are for: what the GPU writes, and what it waits for.
  enum class Kind : uint8_t {
    record,
    await,
    copy_in,
    copy_out,
    sum,
    ready,
    finished,
    drained,
    done,
    taken,
    all_done,
    all_taken
  };
  Kind kind;
  Queue queue;
  Mark mark;
  Copy copy;
  WordOperation word;
  Reduction reduction{};  // its spans are those below
  std::vector<const std::byte*> sources{}, factors{};
};

std::string name_of(Entry::Kind kind);

// Returns the next entry of a program that has an order with this one, by their queue or by the mark that one of them sets; the
// program's size if no entry has.
size_t next_in_order(const std::vector<Entry>& program, size_t at);

// How late copies are, of inputs and of outputs, which kernels write, too.
struct Lateness {
  std::chrono::milliseconds in{0};
  std::chrono::milliseconds out{0};
};

struct Alteration {
  // Moved is behind the next entry in order.
  enum class How : uint8_t { none, drop, move, miscount };
  How how = How::none;
  size_t entry = 0;
};

// Collects what the library enqueues, from the record of the user's stream to the await of it, and enqueues it then, altered,
// one entry at a time, with copies that are late. It serves one rank; a test owns it.
class AlteredGpu : public simulated::SimulatedGpu {
 public:
  AlteredGpu(const simulated::GpuOptions& options, const Lateness& late) : SimulatedGpu(options), late_(late) {}

  // Alters the programs that come from now on, on this stream of the user's.
  void alter(const Alteration& alteration, Queue user) {
    alteration_ = alteration;
    user_ = user;
  }
  // The last program as it was meant.
  const std::vector<Entry>& program() const { return program_; }

  Result<void> copy(Queue queue, const Copy& copy) override;
  Result<void> reduce(Queue queue, const Reduction& reduction) override;
  Result<void> words(Queue queue, std::span<const WordOperation> operations) override;
  Result<void> record(Queue queue, Mark mark) override;
  Result<void> await(Queue queue, Mark mark) override;

 private:
  bool collects() const { return user_.native != nullptr; }
  Result<void> enqueue_altered();
  Result<void> enqueue(const Entry& entry);

  Lateness late_;
  Alteration alteration_;
  Queue user_;
  std::vector<Entry> collected_, program_;
};

}  // namespace fccl::core::testing
