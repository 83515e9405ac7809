// How a trial fills its buffers, and what it expects in them.
#include "processes/trial.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "base/call.h"
#include "operators.h"
#include "unit/kernels/reference.h"

namespace fccl::core::testing {
namespace {

constexpr size_t kPeriod = 8191;
constexpr size_t kGuard = 128;
constexpr std::byte kPoison{0xa5};
constexpr int kScalarIteration = -1;

uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

uint64_t random_bits(int rank, size_t index, int iteration) {
  return mix(mix(mix(static_cast<uint64_t>(rank)) ^ index) ^ static_cast<uint64_t>(iteration));
}

struct FloatFormat {
  int exponent_bits, mantissa_bits;
};

// {0, 0} for integers.
FloatFormat format_of(fcclDataType_t dtype) {
  switch (dtype) {
    case fcclFloat16:
      return {5, 10};
    case fcclBfloat16:
      return {8, 7};
    case fcclFloat32:
      return {8, 23};
    case fcclFloat64:
      return {11, 52};
    case fcclFloat8e4m3:
      return {4, 3};
    case fcclFloat8e5m2:
      return {5, 2};
    default:
      return {0, 0};
  }
}

// A float between 2^-spread and 2^spread, or less far from 1 where the format ends, with random sign and mantissa; a truth
// value of any byte that is false now and then; integers as they come.
uint64_t finite_bits(fcclDataType_t dtype, uint64_t random, int spread) {
  const FloatFormat format = format_of(dtype);
  if (dtype == fcclBool) return mix(random) % 5 == 0 ? 0 : random;
  if (format.exponent_bits == 0) return random;
  spread = std::min(spread, 1 << (format.exponent_bits - 2));
  const uint64_t mantissa = random & ((1ULL << format.mantissa_bits) - 1);
  const uint64_t exponent = (1ULL << (format.exponent_bits - 1)) - 1 - spread + (random >> 53) % (2 * spread);
  const uint64_t sign = random >> 52 & 1;
  return (((sign << format.exponent_bits) | exponent) << format.mantissa_bits) | mantissa;
}

uint64_t element_bits(const Recipe& recipe, int rank, size_t index) {
  constexpr int kSpread = 7;
  const uint64_t random = random_bits(rank, index, recipe.iteration);
  if (!reduces(recipe.collective)) return random;
  // Now and then anything: NaN, infinity, a subnormal number.
  if (!recipe.finite && mix(random) % 61 == 0) return random;
  return finite_bits(recipe.dtype, random, kSpread);
}

// The first byte in which `count` elements differ from the pattern, or the number of bytes if none does.
size_t first_difference(const std::byte* at, size_t count, const Pattern& pattern, size_t first, size_t size) {
  const size_t period = pattern.size() / size;
  for (size_t done = 0; done < count;) {
    const size_t start = (first + done) % period;
    const size_t run = std::min(count - done, period - start);
    const std::byte* got = at + done * size;
    const std::byte* want = pattern.data() + start * size;
    if (std::memcmp(got, want, run * size) != 0)
      return done * size + static_cast<size_t>(std::mismatch(got, got + run * size, want).first - got);
    done += run;
  }
  return count * size;
}

std::string hex(const std::byte* at, size_t bytes) {
  std::string text = "0x";
  for (size_t i = bytes; i-- > 0;) {
    constexpr const char* kDigits = "0123456789abcdef";
    text += kDigits[static_cast<int>(at[i]) >> 4];
    text += kDigits[static_cast<int>(at[i]) & 15];
  }
  return text;
}

}  // namespace

const std::vector<Reduction>& every_reduction() {
  static const std::vector<Reduction> all = [] {
    std::vector<Reduction> found;
    for (int dtype = 0; dtype < fcclNumTypes; ++dtype)
      for (const ReduceOp op : kEveryOperator)
        if (has_meaning(static_cast<fcclDataType_t>(dtype), op)) found.push_back({static_cast<fcclDataType_t>(dtype), op});
    return found;
  }();
  return all;
}

std::string text_of(const Recipe& recipe) {
  const int root = has_root(recipe.collective) ? recipe.root : -1;
  return fccl::core::describe(Signature{.collective = recipe.collective,
                                        .dtype = recipe.dtype,
                                        .op = recipe.op,
                                        .root = root,
                                        .count = recipe.count,
                                        .widens = recipe.widens});
}

std::string describe(const Recipe& recipe) {
  return text_of(recipe) + (is_uneven(recipe.collective) ? std::string(", shares ") + name_of(recipe.shares) : "") +
         (recipe.is_displaced ? ", displaced" : "") + (recipe.in_place ? ", in place" : "") +
         (recipe.buffers == Buffers::own     ? ""
          : recipe.buffers == Buffers::arena ? ", in arenas"
                                             : ", some in arenas") +
         ", misaligned by " + std::to_string(recipe.misalignment) + ", iteration " + std::to_string(recipe.iteration);
}

Recipe random_recipe(std::mt19937_64& generator, int ranks, size_t most_bytes, int iteration) {
  const auto below = [&](size_t bound) { return static_cast<size_t>(generator() % bound); };
  Recipe recipe;
  recipe.iteration = iteration;
  recipe.collective = static_cast<fcclColl_t>(below(fcclCollSend));
  const Reduction reduction = every_reduction()[below(every_reduction().size())];
  recipe.dtype = reduction.dtype;
  if (reduces(recipe.collective)) recipe.op = reduction.op;
  recipe.root = static_cast<int>(below(ranks));
  recipe.in_place = below(3) == 0 && !exchanges(recipe.collective);
  recipe.shares = kEveryShares[below(kEveryShares.size())];
  recipe.is_displaced = below(2) == 0;
  recipe.misalignment = below(3) == 0 ? 1 + below(15) : 0;
  recipe.buffers = std::array{Buffers::own, Buffers::arena, Buffers::mixed}[below(3)];
  const size_t size = size_of(recipe.dtype);
  // A line, the mailbox, slots: where the way changes, also for a block of n.
  const size_t edges[] = {56, 4096, 64 * 1024, 256 * 1024, 512 * 1024};
  const size_t blocks_in_edge = below(2) == 0 ? 1 : ranks;
  const size_t edge = std::max<size_t>(1, edges[below(std::size(edges))] / blocks_in_edge / size);
  const size_t counts[] = {0, 1, 1 + 2 * below(50), edge - 1, edge, edge + 1, below(most_bytes / size), below(20'000)};
  recipe.count = std::min(counts[below(std::size(counts))], most_bytes / size);
  if (recipe.collective == fcclCollBarrier) recipe.count = 0;
  recipe.widens = may_widen(recipe.collective, recipe.dtype) && below(2) == 0;
  if (recipe.widens) recipe.in_place = false;
  return recipe;
}

GuardedBuffer::GuardedBuffer(size_t bytes, size_t misalignment, bool in_arena) : size_(bytes) {
  const size_t whole = bytes + misalignment + 2 * kGuard + 64;
  if (in_arena) {
    void* memory = nullptr;
    if (fcclMemAlloc(&memory, whole) != fcclSuccess) throw std::runtime_error(fcclGetLastError(nullptr));
    owner_ = {static_cast<std::byte*>(memory), [](std::byte* at) { (void)fcclMemFree(at); }};
  } else {
    owner_ = {new std::byte[whole], [](std::byte* at) { delete[] at; }};
  }
  memory_ = {owner_.get(), whole};
  std::ranges::fill(memory_, kPoison);
  void* start = memory_.data() + kGuard;
  size_t space = memory_.size() - kGuard;
  data_ = static_cast<std::byte*>(std::align(64, bytes + misalignment + kGuard, start, space)) + misalignment;
}

bool GuardedBuffer::guards_are_intact() const {
  const auto is_poison = [](std::byte byte) { return byte == kPoison; };
  const std::byte* begin = memory_.data();
  const std::byte* data = data_;
  return data == nullptr ||
         (std::all_of(begin, data, is_poison) && std::all_of(data + size_, begin + memory_.size(), is_poison));
}

Trial::Trial(const Recipe& recipe, int rank, int ranks, Placement placement)
    : recipe_(recipe),
      rank_(rank),
      ranks_(ranks),
      placement_(std::move(placement)),
      input_(input_of_rank(recipe.counts(ranks), rank)),
      output_(output_of_rank(recipe.counts(ranks), rank)) {
  mine_ = pattern_of(rank);
  place_buffers();
  if (!sends()) return;
  const std::vector<std::byte> filled = input();
  if (!filled.empty()) std::memcpy(send_, filled.data(), filled.size());
}

bool Trial::sends() const { return gives(recipe_.collective, rank_, recipe_.root); }
bool Trial::receives() const { return takes(recipe_.collective, rank_, recipe_.root); }

// Mixed: every other call has all inputs in the arena, so that outputs alone differ.
bool Trial::is_in_arena(int buffer) const {
  if (recipe_.buffers != Buffers::mixed) return recipe_.buffers == Buffers::arena;
  if (buffer == 0 && recipe_.iteration % 2 == 0) return true;
  return random_bits(rank_, static_cast<size_t>(buffer), recipe_.iteration) % 2 == 0;
}

void Trial::place_buffers() {
  const size_t size = given_size();
  const bool of_root = recipe_.collective == fcclCollGather || recipe_.collective == fcclCollScatter;
  if (recipe_.collective == fcclCollBarrier) return;
  if (!recipe_.in_place || (of_root && recipe_.root != rank_) || exchanges(recipe_.collective)) {
    recipe_.in_place = false;
    // A buffer that the rank does not use stays NULL.
    if (sends()) first_ = GuardedBuffer(input_.extent * size, recipe_.misalignment, is_in_arena(0));
    if (receives()) second_ = GuardedBuffer(output_.extent * result_size(), recipe_.misalignment * 3 % 16, is_in_arena(1));
    send_ = first_.data();
    recv_ = second_.data();
    return;
  }
  first_ = GuardedBuffer(std::max(input_.extent, output_.extent) * size, recipe_.misalignment, is_in_arena(0));
  send_ = recv_ = first_.data();
  const int own = of_root ? recipe_.root : rank_;
  if (takes_blocks(recipe_.collective)) send_ = recv_ + output_.offsets[static_cast<size_t>(own)] * size;
  if (gives_blocks(recipe_.collective)) recv_ = send_ + input_.offsets[static_cast<size_t>(own)] * size;
}

Pattern Trial::pattern_of(int rank) const {
  const size_t size = size_of(recipe_.dtype);
  Pattern pattern(std::min(input_of_rank(recipe_.counts(ranks_), rank).extent, kPeriod) * size);
  for (size_t i = 0; i * size < pattern.size(); ++i) {
    const uint64_t bits = element_bits(recipe_, rank, i);
    std::memcpy(pattern.data() + i * size, &bits, size);
  }
  return pattern;
}

Scalar Trial::factor_of(int rank) const {
  Scalar scalar;
  const uint64_t bits = finite_bits(recipe_.dtype, random_bits(rank, 0, kScalarIteration), 2);
  std::memcpy(&scalar.bits, &bits, size_of(recipe_.dtype));
  return scalar;
}

// Hosts in the order of their first ranks, and the ranks of each ascending.
Pattern Trial::reduced_pattern() const {
  const std::vector<int> hosts = placement_.host_of.empty() ? std::vector<int>(ranks_) : placement_.host_of;
  std::vector<Bytes> sources;
  std::vector<Scalar> scalars;
  Hosts order{.ranks = {}, .wire_is_float32 = placement_.wire_is_float32};
  for (int first = 0; first < ranks_; ++first) {
    const auto is_new = std::find(hosts.begin(), hosts.begin() + first, hosts[first]) == hosts.begin() + first;
    if (is_new) order.ranks.push_back(0);
    for (int rank = first; is_new && rank < ranks_; ++rank) {
      if (hosts[rank] != hosts[first]) continue;
      sources.push_back(pattern_of(rank));
      scalars.push_back(factor_of(rank));
      ++order.ranks.back();
    }
  }
  if (order.ranks.size() == 1) order.ranks.clear();
  if (recipe_.widens) return reference_reduce_to_float32(recipe_.dtype, recipe_.op, sources, scalars, order);
  return reference_reduce(recipe_.dtype, recipe_.op, sources, scalars, order);
}

std::vector<std::byte> Trial::input() const {
  std::vector<std::byte> filled(sends() ? input_.extent * size_of(recipe_.dtype) : 0);
  for (size_t done = 0; done < filled.size(); done += mine_.size())
    std::memcpy(filled.data() + done, mine_.data(), std::min(mine_.size(), filled.size() - done));
  return filled;
}

std::span<const std::byte> Trial::result() const { return {recv_, receives() ? output_.extent * result_size() : 0}; }

fcclResult_t Trial::issue(fcclComm_t comm, fcclStream_t stream) {
  if (!reduces(recipe_.collective) || recipe_.op != ReduceOp::premul_sum)
    return call(static_cast<fcclRedOp_t>(recipe_.op), comm, stream);
  Scalar scalar = factor_of(rank_);
  fcclRedOp_t op;
  const auto residence = scalar_ == nullptr ? fcclScalarHostImmediate : fcclScalarDevice;
  if (auto made = fcclRedOpCreatePreMulSum(&op, scalar_ == nullptr ? &scalar.bits : scalar_, recipe_.dtype, residence, comm);
      made != fcclSuccess)
    return made;
  const fcclResult_t called = call(op, comm, stream);
  const fcclResult_t destroyed = fcclRedOpDestroy(op, comm);
  return called != fcclSuccess ? called : destroyed;
}

// The buffers are there for the time of the call only: what is asked for their faults is this side's.
fcclResult_t Trial::issue_elsewhere(const Elsewhere& elsewhere, fcclComm_t comm, fcclStream_t stream) {
  const auto there = [&](std::byte* here) -> std::byte* {
    for (size_t i = 0; i < 2; ++i)
      if (const auto all = memory()[i]; here >= all.data() && here < all.data() + all.size())
        return elsewhere.buffers[i] + (here - all.data());
    return nullptr;
  };
  const std::pair<std::byte*, std::byte*> here{send_, recv_};
  send_ = there(send_);
  recv_ = there(recv_);
  scalar_ = elsewhere.scalar;
  const fcclResult_t result = issue(comm, stream);
  std::tie(send_, recv_) = here;
  return result;
}

fcclResult_t Trial::call(fcclRedOp_t op, fcclComm_t comm, fcclStream_t stream) {
  const Recipe& r = recipe_;
  if (r.widens) return call_typed(op, comm, stream);
  switch (r.collective) {
    case fcclCollAllReduce:
      return fcclAllReduce(send_, recv_, r.count, r.dtype, op, comm, stream);
    case fcclCollBroadcast:
      return fcclBroadcast(send_, recv_, r.count, r.dtype, r.root, comm, stream);
    case fcclCollReduce:
      return fcclReduce(send_, recv_, r.count, r.dtype, op, r.root, comm, stream);
    case fcclCollAllGather:
      return fcclAllGather(send_, recv_, r.count, r.dtype, comm, stream);
    case fcclCollReduceScatter:
      return fcclReduceScatter(send_, recv_, r.count, r.dtype, op, comm, stream);
    case fcclCollGather:
      return fcclGather(send_, recv_, r.count, r.dtype, r.root, comm, stream);
    case fcclCollScatter:
      return fcclScatter(send_, recv_, r.count, r.dtype, r.root, comm, stream);
    case fcclCollBarrier:
      return fcclBarrier(comm, stream);
    case fcclCollAlltoAll:
      return fcclAlltoAll(send_, recv_, r.count, r.dtype, comm, stream);
    case fcclCollAllGatherV:
    case fcclCollReduceScatterV:
    case fcclCollAlltoAllV:
      return call_uneven(op, comm, stream);
    case fcclCollSend:
    case fcclCollRecv:
    case fcclNumColls:
      break;
  }
  return fcclInvalidArgument;
}

fcclResult_t Trial::call_typed(fcclRedOp_t op, fcclComm_t comm, fcclStream_t stream) {
  const Recipe& r = recipe_;
  if (r.collective == fcclCollReduce)
    return fcclReduceTyped(send_, recv_, r.count, r.dtype, r.result_type(), op, r.root, comm, stream);
  const auto function = r.collective == fcclCollAllReduce ? fcclAllReduceTyped : fcclReduceScatterTyped;
  return function(send_, recv_, r.count, r.dtype, r.result_type(), op, comm, stream);
}

// NULL where blocks lie one behind the other, every second time.
const size_t* Trial::displacements(const BlocksOfBuffer& blocks) const {
  return recipe_.is_displaced || recipe_.iteration % 2 == 0 ? blocks.offsets.data() : nullptr;
}

// The arrays end with the call, which on a stream is before it is done.
fcclResult_t Trial::call_uneven(fcclRedOp_t op, fcclComm_t comm, fcclStream_t stream) {
  const Recipe& r = recipe_;
  BlocksOfBuffer given = input_, taken = output_;
  fcclResult_t result = fcclInvalidArgument;
  if (r.collective == fcclCollAllGatherV)
    result = fcclAllGatherV(send_, given.counts[0], recv_, taken.counts.data(), displacements(taken), r.dtype, comm, stream);
  if (r.collective == fcclCollReduceScatterV)
    result = fcclReduceScatterV(send_, recv_, given.counts.data(), r.dtype, op, comm, stream);
  if (r.collective == fcclCollAlltoAllV)
    result = fcclAlltoAllV(send_, given.counts.data(), displacements(given), recv_, taken.counts.data(), displacements(taken),
                           r.dtype, comm, stream);
  for (std::vector<size_t>* counts : {&given.counts, &given.offsets, &taken.counts, &taken.offsets})
    std::ranges::fill(*counts, SIZE_MAX);
  return result;
}

std::string Trial::fault() const {
  std::string fault = fault_of_result();
  if (fault.empty()) fault = fault_of_input();
  if (fault.empty()) fault = fault_of_gaps();
  if (fault.empty() && !(first_.guards_are_intact() && second_.guards_are_intact()))
    fault = "bytes beside a buffer were written";
  return fault.empty() ? ""
                       : describe(recipe_) + ": rank " + std::to_string(rank_) + " of " + std::to_string(ranks_) + ": " + fault;
}

std::string Trial::fault_of(const Expected& expected) const {
  const size_t size = expected.size;
  const size_t byte = first_difference(expected.at, expected.count, expected.pattern, expected.first, size);
  if (byte == expected.count * size) return "";
  const size_t index = byte / size;
  const size_t period = expected.pattern.size() / size;
  return std::string(expected.what) + ", element " + std::to_string(index) + ": is " + hex(expected.at + index * size, size) +
         ", should be " + hex(expected.pattern.data() + (expected.first + index) % period * size, size);
}

std::string Trial::fault_of_result() const {
  if (!receives()) return "";
  for (int i = 0; std::cmp_less(i, output_.counts.size()); ++i) {
    const size_t count = output_.counts[static_cast<size_t>(i)];
    if (count == 0) continue;
    const std::byte* const block = recv_ + output_.offsets[static_cast<size_t>(i)] * result_size();
    const Source source = sources_of(recipe_.collective, rank_, i, ranks_, recipe_.root).front();
    const size_t first = input_of_rank(recipe_.counts(ranks_), source.rank).offsets[static_cast<size_t>(source.block)];
    const std::string fault = reduces(recipe_.collective)
                                  ? fault_of({block, count, reduced_pattern(), first, "reduced", result_size()})
                                  : fault_of({block, count, pattern_of(source.rank), first, "received", result_size()});
    if (!fault.empty()) return output_.counts.size() == 1 ? fault : "block " + std::to_string(i) + ": " + fault;
  }
  return "";
}

// The input that the call must not have touched: all of it, or in place, the blocks that no result goes to.
std::string Trial::fault_of_input() const {
  if (!sends()) return "";
  if (!recipe_.in_place || !receives()) return fault_of({send_, input_.extent, mine_, 0, "input after the call", given_size()});
  if (!gives_blocks(recipe_.collective)) return "";
  const int own = recipe_.collective == fcclCollScatter ? recipe_.root : rank_;
  for (size_t i = 0; i < input_.counts.size(); ++i)
    if (std::cmp_not_equal(i, own))
      if (auto fault = fault_of({send_ + input_.offsets[i] * given_size(), input_.counts[i], mine_, input_.offsets[i],
                                 "input after the call", given_size()});
          !fault.empty())
        return "block " + std::to_string(i) + ": " + fault;
  return "";
}

// Between the blocks of the output nothing may be written.
std::string Trial::fault_of_gaps() const {
  if (!receives() || !output_.has_gaps()) return "";
  std::vector<std::byte> seen(result().begin(), result().end());
  const size_t size = result_size();
  for (size_t i = 0; i < output_.counts.size(); ++i)
    std::fill_n(seen.begin() + static_cast<ptrdiff_t>(output_.offsets[i] * size), output_.counts[i] * size, kPoison);
  const bool intact = std::ranges::all_of(seen, [](std::byte byte) { return byte == kPoison; });
  return intact ? "" : "bytes between the blocks of the output were written";
}

std::unique_ptr<Trial> trial_of(fcclColl_t collective, size_t count, const Seat& seat, int iteration) {
  return std::make_unique<Trial>(Recipe{.collective = collective, .dtype = fcclFloat32, .count = count, .iteration = iteration},
                                 seat.rank, seat.ranks);
}

std::string try_collective(const Recipe& recipe, int rank, int ranks, fcclComm_t comm, fcclStream_t stream) {
  Trial trial(recipe, rank, ranks);
  fcclResult_t result = trial.issue(comm, stream);
  if (result == fcclSuccess && stream != nullptr) result = fcclStreamSynchronize(stream);
  if (result != fcclSuccess) return describe(recipe) + ": " + fcclGetErrorString(result) + ": " + fcclGetLastError(nullptr);
  return trial.fault();
}

}  // namespace fccl::core::testing
