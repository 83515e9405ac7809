// Trial: one rank's part of one collective with buffers that betray every wrong byte.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "fccl/fccl.h"
#include "oracle.h"
#include "processes/ranks.h"
#include "shares.h"

namespace fccl::core::testing {

// The memory of a call's buffers: the process's own, that of fcclMemAlloc, or each in one of the two, by rank.
enum class Buffers : uint8_t { own, arena, mixed };

// A collective, equal on all ranks. Inputs are made from (rank, index, iteration).
struct Recipe {
  fcclColl_t collective = fcclCollBarrier;
  fcclDataType_t dtype = fcclUint8;
  size_t count = 0;
  ReduceOp op = ReduceOp::sum;
  int root = 0;
  bool in_place = false;
  size_t misalignment = 0;  // bytes past an address that suits every type
  int iteration = 0;
  bool finite = false;  // reductions: no NaN and no infinity among the inputs
  // The counts of collectives whose blocks have their own, up to `count`.
  Shares shares = Shares::random;
  bool is_displaced = false;
  Buffers buffers = Buffers::own;
  bool widens = false;  // results are float32; of a reduction of equal counts of narrower floats, not in place

  fcclDataType_t result_type() const { return widens ? fcclFloat32 : dtype; }
  Counts counts(int ranks) const { return {collective, ranks, count, shares, is_displaced, iteration}; }
};

// Collectives of equal counts of either lane, save the barrier.
inline constexpr fcclColl_t kMovers[] = {fcclCollAllGather, fcclCollBroadcast, fcclCollGather, fcclCollScatter};
inline constexpr fcclColl_t kReducers[] = {fcclCollAllReduce, fcclCollReduce, fcclCollReduceScatter};

// All that move bytes, and all that reduce.
inline constexpr fcclColl_t kEveryMover[] = {fcclCollAllGather, fcclCollBroadcast,  fcclCollGather,   fcclCollScatter,
                                             fcclCollAlltoAll,  fcclCollAllGatherV, fcclCollAlltoAllV};
inline constexpr fcclColl_t kEveryReducer[] = {fcclCollAllReduce, fcclCollReduce, fcclCollReduceScatter,
                                               fcclCollReduceScatterV};

// As the library's errors name it, and with all that a test chose.
std::string text_of(const Recipe& recipe);
std::string describe(const Recipe& recipe);

// An operator on a type that it has a meaning for, and all of them.
struct Reduction {
  fcclDataType_t dtype;
  ReduceOp op;
};
const std::vector<Reduction>& every_reduction();
// True if its results may be float32, which is wider.
inline bool may_widen(fcclColl_t collective, fcclDataType_t dtype) {
  return reduces(collective) && !is_uneven(collective) &&
         (dtype == fcclFloat16 || dtype == fcclBfloat16 || dtype == fcclFloat8e4m3 || dtype == fcclFloat8e5m2);
}

// A recipe that works: any collective, type, operator, root and placement, and a count that is 0, 1, or close to a size at
// which the library changes its way, or anything up to `most_bytes` per block. Equal generators give equal recipes.
Recipe random_recipe(std::mt19937_64& generator, int ranks, size_t most_bytes, int iteration);

// Bytes between two guards, all poisoned at first.
class GuardedBuffer {
 public:
  GuardedBuffer() = default;
  // `in_arena`: of fcclMemAlloc.
  GuardedBuffer(size_t bytes, size_t misalignment, bool in_arena = false);
  std::byte* data() { return data_; }
  const std::byte* data() const { return data_; }
  size_t size() const { return size_; }
  bool guards_are_intact() const;
  // With the guards.
  std::span<std::byte> memory() { return memory_; }

 private:
  std::unique_ptr<std::byte, void (*)(std::byte*)> owner_{nullptr, nullptr};
  std::span<std::byte> memory_;
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

// Elements that repeat after a prime number of them, so that long buffers cost little to foresee and no slice looks like
// another.
using Pattern = std::vector<std::byte>;

// The hosts of the ranks, since a sum has another order between hosts.
struct Placement {
  std::vector<int> host_of;      // by rank; empty: all on one host
  bool wire_is_float32 = false;  // between hosts, also of narrower types
};

// The place at which the library finds a trial's memory, guards and all, if not its own: copies of the two buffers, which the
// test makes before the call and brings back after it. `scalar`: where the factor lies on the GPU, null if it is given at once.
struct Elsewhere {
  std::array<std::byte*, 2> buffers{};
  void* scalar = nullptr;
};

// Made, issued once, and asked for its fault when the operation is done. Must live until then.
class Trial {
 public:
  Trial(const Recipe& recipe, int rank, int ranks, Placement placement = {});
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

  fcclResult_t issue(fcclComm_t comm, fcclStream_t stream = nullptr);
  fcclResult_t issue_elsewhere(const Elsewhere& elsewhere, fcclComm_t comm, fcclStream_t stream);
  std::array<std::span<std::byte>, 2> memory() { return {first_.memory(), second_.memory()}; }
  // The fault of the buffers after the call; "" if they are good.
  std::string fault() const;

  // This rank's input as it was before the call, where it has one, and its result, where it gets one.
  std::vector<std::byte> input() const;
  std::span<const std::byte> result() const;
  const BlocksOfBuffer& input_blocks() const { return input_; }
  const BlocksOfBuffer& output_blocks() const { return output_; }
  // A rank's factor of a pre-multiplied sum.
  Scalar factor_of(int rank) const;

 private:
  struct Expected {
    const std::byte* at;
    size_t count;
    const Pattern& pattern;
    size_t first;  // index of the first element in the pattern
    const char* what;
    size_t size;  // the size of an element
  };
  bool sends() const;
  bool receives() const;
  size_t given_size() const { return size_of(recipe_.dtype); }
  size_t result_size() const { return size_of(recipe_.result_type()); }
  Pattern pattern_of(int rank) const;
  Pattern reduced_pattern() const;
  bool is_in_arena(int buffer) const;
  void place_buffers();
  fcclResult_t call(fcclRedOp_t op, fcclComm_t comm, fcclStream_t stream);
  fcclResult_t call_typed(fcclRedOp_t op, fcclComm_t comm, fcclStream_t stream);
  fcclResult_t call_uneven(fcclRedOp_t op, fcclComm_t comm, fcclStream_t stream);
  const size_t* displacements(const BlocksOfBuffer& blocks) const;
  std::string fault_of(const Expected& expected) const;
  std::string fault_of_result() const;
  std::string fault_of_input() const;
  std::string fault_of_gaps() const;

  Recipe recipe_;
  int rank_;
  int ranks_;
  Placement placement_;
  BlocksOfBuffer input_, output_;
  GuardedBuffer first_;   // both buffers if in place, else the input
  GuardedBuffer second_;  // the output if not in place
  std::byte* send_ = nullptr;
  std::byte* recv_ = nullptr;
  Pattern mine_;
  void* scalar_ = nullptr;  // on the GPU
};

// Of float32.
std::unique_ptr<Trial> trial_of(fcclColl_t collective, size_t count, const Seat& seat, int iteration = 0);

// Issues a trial, waits for its end and returns what went wrong, "" if nothing.
std::string try_collective(const Recipe& recipe, int rank, int ranks, fcclComm_t comm, fcclStream_t stream = nullptr);

}  // namespace fccl::core::testing
