// Page: the memory in which a process shows its communicators' activity, to itself and to other processes.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "fccl/fccl.h"

namespace fccl::core::metrics {

// The paths of a call, in the order of Path (host/route.h), with `whole`, a variant of mapped, before it; then those of
// calls on GPU memory whose bytes no processor copies, by slots in host memory and in that of GPUs, and that of sends and
// receives.
inline constexpr auto kPathNames = std::to_array<const char*>(
    {"alone", "mailbox", "whole", "mapped", "attach", "ring", "across", "landed", "peer", "transfer"});
inline constexpr size_t kPaths = kPathNames.size();
inline constexpr size_t kLandedPath = kPaths - 3;
inline constexpr size_t kPeerPath = kPaths - 2;
inline constexpr size_t kTransferPath = kPaths - 1;
// Calls on the first kSampledPaths paths are shorter than reading a clock, so only one in kTimedOneIn is timed.
inline constexpr size_t kSampledPaths = 2;
inline constexpr uint64_t kTimedOneIn = 64;
// The largest call of each class of sizes, in bytes; the last class has no end.
inline constexpr std::array<uint64_t, 5> kLargest = {256, 4096, 65536, uint64_t{1} << 20, uint64_t{1} << 24};
inline constexpr size_t kSizes = kLargest.size() + 1;
// Bucket i of a histogram counts calls of at most 2^i times 1.024 us; the last one counts all longer calls.
inline constexpr size_t kBuckets = FCCL_METRICS_BUCKETS;
inline constexpr int kFirstBucketBits = 10;
inline constexpr int kRails = FCCL_METRICS_RAILS;
inline constexpr int kCommunicators = 64;
inline constexpr int kPeers = 1024;
inline constexpr int kPlaces = 512;
// The lanes of a communicator, including the lane of sends and receives. Each lane has one call in flight at a time.
inline constexpr size_t kLanes = 3;
// A name on the page, which ends at the first zero; a longer one is cut.
using Name = std::array<char, 32>;

inline size_t size_class_of(uint64_t bytes) {
  // Each class spans four bits of size, from 2^8 on.
  const int bits = bytes <= kLargest[0] ? 0 : (std::bit_width(bytes - 1) - 5) / 4;
  return static_cast<size_t>(bits) < kSizes ? static_cast<size_t>(bits) : kSizes - 1;
}

inline size_t bucket_of(uint64_t nanoseconds) {
  const int bits = nanoseconds <= 1 ? 0 : std::bit_width(nanoseconds - 1) - kFirstBucketBits;
  return bits <= 0 ? 0 : static_cast<size_t>(bits) < kBuckets ? static_cast<size_t>(bits) : kBuckets - 1;
}

using Count = std::atomic<uint64_t>;

inline uint64_t value_of(const Count& count) { return count.load(std::memory_order_relaxed); }
// Adds without an atomic read-modify-write, since each count has one writer.
inline void raise(Count& count, uint64_t by) { count.store(value_of(count) + by, std::memory_order_relaxed); }

// The text of a failure in words of memory, so that it may be read while it is written; a longer text is cut.
using FailureText = std::array<Count, 128>;

// The calls of one collective, path and class of sizes. `copied` has several writers, and is raised by add_copied.
struct Calls {
  Count calls, bytes, timed, nanoseconds, copied;
  std::array<Count, kBuckets> buckets;

  void time(uint64_t taken) {
    raise(timed, 1);
    raise(nanoseconds, taken);
    raise(buckets[bucket_of(taken)], 1);
  }
  void add_copied(uint64_t read) { copied.fetch_add(read, std::memory_order_relaxed); }
};
using CallsOfCollective = std::array<std::array<Calls, kSizes>, kPaths>;

// The calls of one communicator, or of all that have ended. Entries of collectives never called are untouched memory.
struct CallTable {
  Count called;  // a bit for each collective that was called
  std::array<CallsOfCollective, fcclNumColls> of;

  bool has(int collective) const { return (value_of(called) >> collective & 1) != 0; }
};

// A call that has waited for at least a millisecond.
struct Flight {
  Count is_shown;  // 0: no call is shown
  Count collective, bytes;
  Count since_ms;                // when the wait was first seen, on the scale of to_ms
  std::atomic<int64_t> awaited;  // the awaited rank; -1: any rank
};

// A communicator of the process. Only its rank writes here: the thread that runs a lane writes the lane's flight and the counts
// of the lane's collectives.
struct CommunicatorPart {
  Count is_shown;  // 0: the place is free
  Name name;
  int32_t rank, ranks, places;
  std::array<int32_t, kPlaces> processes;  // process ids of the ranks on this host
  std::array<Flight, kLanes> flights;
  Count init_us;  // the time that its making took; 0: it is still being made
  std::array<Count, kPeers> waited_us;
  CallTable calls;
};

// A NIC of the process. Communicators whose ranks are threads of it may use different ones under one number.
struct RailPart {
  Count bytes, messages, retries;
  Name nic;
};

// One per process. It begins as zeros and stays allocated while the process lives.
struct Page {
  uint64_t magic;
  int64_t process;
  Count served_port;         // the port on which this process serves metrics; 0: it does not
  Name transport, provider;  // of the first communicator between hosts; empty without one
  std::array<Count, fcclNumResults> errors;
  Count failed_ms;           // when the last of them was counted, on the scale of to_ms
  FailureText last_failure;  // its text
  std::array<RailPart, kRails> rails;
  CallTable gone;  // sums over communicators that have ended
  std::array<CommunicatorPart, kCommunicators> communicators;
};

inline constexpr uint64_t kMagic = 0x6663636c6d657404;  // its last byte is the version of this layout
inline constexpr const char* kMemoryName = "fccl-metrics";

}  // namespace fccl::core::metrics
