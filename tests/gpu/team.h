// Team: processes that do one case of a probe together, and the process that starts them, hears them and ends them in time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "deadline.h"
#include "row.h"

namespace fccl::gpu {

inline constexpr int kMostRanks = 8;
inline constexpr size_t kSharedBytes = 64 << 10;

// Thrown by a rank that finds a feature missing: the case ends as unsupported, not as failed.
class Unsupported : public std::runtime_error {
 public:
  explicit Unsupported(const std::string& feature) : std::runtime_error("not supported here: " + feature) {}
};

// A message between two ranks: bytes, and perhaps a descriptor, which then belongs to the receiver.
struct Packet {
  std::string bytes;
  int descriptor = -1;
};

// A rank's descriptors, which it owns as long as its process lives, and the memory that all ranks map.
struct Connections {
  std::vector<int> peers;  // by rank; -1: oneself
  int report = -1;
  std::span<std::byte> shared;
};

// One rank's end of the connections to the others and to the process that started it. Used by the one thread of its process. A
// wait that fails throws std::runtime_error with a text that names whom it waited for; nothing may be awaited after that.
class Rank {
 public:
  Rank(int index, int count, Deadline deadline, Connections connections)
      : index_(index), count_(count), deadline_(deadline), connections_(std::move(connections)) {}

  int index() const { return index_; }
  int count() const { return count_; }
  const Deadline& deadline() const { return deadline_; }

  void report(const Row& row);

  void send(int to, std::string_view bytes, int descriptor = -1);
  Packet receive(int from);
  // Returns when the process of that rank has ended.
  void wait_for_end_of(int peer);
  // Returns when all ranks have come.
  void meet(const char* what);

  // Zeroed memory that all ranks of the case share, at one address, page-aligned.
  std::span<std::byte> shared() const { return connections_.shared; }

 private:
  int index_;
  int count_;
  Deadline deadline_;
  Connections connections_;
};

enum class Outcome { well, unsupported, failed };

// How a case ended, and why it did not end well.
struct TeamEnd {
  Outcome outcome = Outcome::well;
  std::string why;
};

// Runs `part` in `ranks` new processes, which must all return within `seconds`. The first rank that fails, dies or passes the
// limit ends the case: the others are killed. Ranks die with the process that called, which itself neither calls CUDA nor waits
// longer than the limit and a moment to bury the dead. The calling process must have one thread.
TeamEnd run_team(int ranks, double seconds, const std::function<void(Rank&)>& part,
                 const std::function<void(const Row&)>& hear);

}  // namespace fccl::gpu
