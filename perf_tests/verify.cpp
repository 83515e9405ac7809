// Computes inputs and results element by element, with code that shares nothing with the library.
#include "verify.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace fccl::perf {
namespace {

// An element in its own encoding, in the low bytes.
using Bits = std::uint64_t;

// A hash in which every input bit reaches every output bit (the finaliser of SplitMix64).
std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

std::uint64_t input_hash(int rank, std::uint64_t iteration, std::size_t index) {
  return mix(index ^ (static_cast<std::uint64_t>(rank) << 40) ^ (iteration << 56));
}

// An integer so small that the sum over `ranks` stays within a byte, and so within bfloat16's significand.
std::int64_t input_integer(const Trial& trial, int rank, std::size_t index) {
  const auto largest = static_cast<std::uint64_t>(std::max(1, 127 / trial.place.ranks));
  return static_cast<std::int64_t>(input_hash(rank, trial.iteration, index) % (2 * largest + 1)) -
         static_cast<std::int64_t>(largest);
}

// `bits` of a float without its lowest `dropped` bits, rounded to nearest, ties to even.
std::uint32_t round_off(std::uint32_t bits, int dropped) {
  const std::uint32_t even = (bits >> dropped) & 1;
  return (bits + (std::uint32_t{1} << (dropped - 1)) - 1 + even) >> dropped;
}

// Zero, or a value that float16 holds as a normal number.
std::uint32_t float16_bits(float value) {
  if (value == 0) return 0;
  const auto bits = std::bit_cast<std::uint32_t>(value);
  constexpr std::uint32_t kExponentShift = (127 - 15) << 10;
  return ((bits >> 16) & 0x8000) | (round_off(bits & 0x7fffffff, 13) - kExponentShift);
}

Bits encode(double value, fcclDataType_t datatype) {
  switch (datatype) {
    case fcclFloat64:
      return std::bit_cast<std::uint64_t>(value);
    case fcclFloat32:
      return std::bit_cast<std::uint32_t>(static_cast<float>(value));
    case fcclFloat16:
      return float16_bits(static_cast<float>(value));
    case fcclBfloat16:
      return round_off(std::bit_cast<std::uint32_t>(static_cast<float>(value)), 16);
    default:
      return static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
  }
}

Bits input(const Trial& trial, int rank, std::size_t index) {
  if (!trial.collective.reduces) return input_hash(rank, trial.iteration, index);
  return encode(static_cast<double>(input_integer(trial, rank, index)), trial.type.datatype);
}

// The value of the operator over all ranks. An average is one division of the exact sum, in float for 16-bit floats.
Bits reduced(const Trial& trial, std::size_t index) {
  std::int64_t total = input_integer(trial, 0, index);
  for (int rank = 1; rank < trial.place.ranks; ++rank) {
    const std::int64_t value = input_integer(trial, rank, index);
    switch (trial.op.op) {
      case Op::min:
        total = std::min(total, value);
        break;
      case Op::max:
        total = std::max(total, value);
        break;
      default:
        total += value;
    }
  }
  if (trial.op.op != Op::avg) return encode(static_cast<double>(total), trial.type.datatype);
  if (trial.type.datatype == fcclFloat64) return encode(static_cast<double>(total) / trial.place.ranks, fcclFloat64);
  return encode(static_cast<float>(total) / static_cast<float>(trial.place.ranks), trial.type.datatype);
}

Bits expected(const Trial& trial, std::size_t index) {
  const Origin origin = trial.collective.origin(trial.layout, trial.place, index);
  return origin.rank == Origin::kEveryRank ? reduced(trial, origin.index) : input(trial, origin.rank, origin.index);
}

}  // namespace

static_assert(std::endian::native == std::endian::little, "elements are compared by their low bytes");

void fill_input(const Trial& trial, std::byte* send) {
  for (std::size_t index = 0; index < trial.layout.send_count; ++index) {
    const Bits bits = input(trial, trial.place.rank, index);
    std::memcpy(send + index * trial.type.bytes, &bits, trial.type.bytes);
  }
}

void poison(std::byte* memory, std::size_t bytes) {
  if (bytes > 0) std::memset(memory, 0xab, bytes);
}

std::uint64_t count_wrong(const Trial& trial, const std::byte* recv) {
  std::uint64_t wrong = 0;
  for (std::size_t index = 0; index < trial.layout.recv_count; ++index) {
    const Bits bits = expected(trial, index);
    if (std::memcmp(recv + index * trial.type.bytes, &bits, trial.type.bytes) != 0) ++wrong;
  }
  return wrong;
}

}  // namespace fccl::perf
