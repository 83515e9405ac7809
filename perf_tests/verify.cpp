// Computes inputs and results element by element, with code that shares nothing with the library.
#include "verify.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace fccl::perf {
namespace {

// The finaliser of SplitMix64.
std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// Of all ranks a window of `active`, another one for every index, so that many ranks cannot make a sum too large.
bool is_active(const Trial& trial, int rank, std::size_t index, int active) {
  if (active == trial.place.ranks) return true;
  const auto ranks = static_cast<std::uint64_t>(trial.place.ranks);
  const std::uint64_t first = hash_of(trial.number, -1, index) % ranks;
  return (static_cast<std::uint64_t>(rank) + ranks - first) % ranks < static_cast<std::uint64_t>(active);
}

// An integer of [-limit, limit].
double integer_from(std::uint64_t hash, std::uint64_t limit) {
  return static_cast<double>(static_cast<std::int64_t>(hash % (2 * limit + 1)) - static_cast<std::int64_t>(limit));
}

// 2^e with e the same on all ranks, such that numbers of `bits` bits times 2^e are normal and in range.
double scale_of(const Trial& trial, std::size_t index, const FloatRange& range, int bits) {
  constexpr int kWidest = 20;  // varied enough, and far from what a product of double could not hold
  const int least = std::max(range.min_exponent, -kWidest);
  const int greatest = std::min(range.max_exponent - bits, kWidest);
  const std::uint64_t hash = hash_of(trial.number, -2, index);
  return std::ldexp(1.0, least + static_cast<int>(hash % static_cast<std::uint64_t>(greatest - least + 1)));
}

// Integers so small that their sum has no more bits than a significand, times one power of two.
double summand(const Trial& trial, int rank, std::size_t index) {
  const FloatRange range = range_of(trial.type.datatype);
  const std::uint64_t greatest_sum = (std::uint64_t{1} << range.precision) / (trial.op.scaled ? 2 : 1);
  const int active = static_cast<int>(std::min<std::uint64_t>(static_cast<std::uint64_t>(trial.place.ranks), greatest_sum));
  if (!is_active(trial, rank, index, active)) return 0;
  const double integer = integer_from(hash_of(trial.number, rank, index), greatest_sum / static_cast<std::uint64_t>(active));
  return integer == 0 ? 0 : integer * scale_of(trial, index, range, range.precision);
}

// A full significand on one rank, another one for every index, and powers of two on the others, few of them not 1.
double factor(const Trial& trial, int rank, std::size_t index) {
  const FloatRange range = range_of(trial.type.datatype);
  const std::uint64_t hash = hash_of(trial.number, rank, index);
  const double sign = hash & 1 ? -1 : 1;
  const auto chosen = static_cast<int>(hash_of(trial.number, -3, index) % static_cast<std::uint64_t>(trial.place.ranks));
  if (rank == chosen) {
    const double stored = std::ldexp(1.0, range.precision - 1);
    return sign * (1 + static_cast<double>((hash >> 1) % static_cast<std::uint64_t>(stored)) / stored);
  }
  const int room = std::min({-range.min_exponent, range.max_exponent - 1, trial.place.ranks});
  return is_active(trial, rank, index, room) ? sign * std::ldexp(1.0, static_cast<int>((hash >> 1) % 3) - 1) : sign;
}

// Any number of the type, zero left out: of the two zeros only the library's own tests say which is the least.
double candidate(const Trial& trial, int rank, std::size_t index) {
  const FloatRange range = range_of(trial.type.datatype);
  const double integer = integer_from(hash_of(trial.number, rank, index), std::uint64_t{1} << range.precision);
  return (integer == 0 ? 1 : integer) * scale_of(trial, index, range, range.precision);
}

double floating_input(const Trial& trial, int rank, std::size_t index) {
  switch (trial.op.op) {
    case Op::prod:
      return factor(trial, rank, index);
    case Op::min:
    case Op::max:
      return candidate(trial, rank, index);
    default:
      return summand(trial, rank, index);
  }
}

double reduced_floating(const Trial& trial, std::size_t index) {
  const auto scaled = [&](int rank) { return floating_input(trial, rank, index) * (trial.op.scaled ? scalar_of(rank) : 1); };
  double total = scaled(0);
  for (int rank = 1; rank < trial.place.ranks; ++rank) {
    const double value = scaled(rank);
    if (trial.op.op == Op::prod) {
      total *= value;
    } else if (trial.op.op == Op::min) {
      total = std::min(total, value);
    } else if (trial.op.op == Op::max) {
      total = std::max(total, value);
    } else {
      total += value;
    }
  }
  if (trial.op.op != Op::avg) return total;
  // One division of the exact sum, in float except for double.
  if (trial.type.datatype == fcclFloat64) return total / trial.place.ranks;
  return static_cast<float>(total) / static_cast<float>(trial.place.ranks);
}

// The low `bytes` of `bits` as the 64-bit integer of the same value and signedness.
Bits extended(Bits bits, const ElementType& type) {
  const int unused = 64 - 8 * static_cast<int>(type.bytes);
  if (type.family == Family::signed_integer) return static_cast<Bits>(static_cast<std::int64_t>(bits << unused) >> unused);
  return bits << unused >> unused;
}

Bits integer_input(const Trial& trial, int rank, std::size_t index) {
  const Bits hash = hash_of(trial.number, rank, index);
  if (trial.op.op != Op::avg) return extended(hash, trial.type);
  const bool has_sign = trial.type.family == Family::signed_integer;
  const Bits greatest_sum = ~Bits{0} >> (64 - 8 * trial.type.bytes) >> (has_sign ? 1 : 0);
  const auto active = std::min(static_cast<Bits>(trial.place.ranks), greatest_sum);
  if (!is_active(trial, rank, index, static_cast<int>(active))) return 0;
  const Bits limit = greatest_sum / active;
  const Bits magnitude = (hash >> 1) % limit + 1;
  return has_sign && (hash & 1) ? Bits{0} - magnitude : magnitude;
}

Bits reduced_integer(const Trial& trial, std::size_t index) {
  const bool has_sign = trial.type.family == Family::signed_integer;
  const auto less = [&](Bits a, Bits b) {
    return has_sign ? static_cast<std::int64_t>(a) < static_cast<std::int64_t>(b) : a < b;
  };
  const auto scaled = [&](int rank) {
    return integer_input(trial, rank, index) * (trial.op.scaled ? static_cast<Bits>(scalar_of(rank)) : 1);
  };
  Bits total = scaled(0);
  for (int rank = 1; rank < trial.place.ranks; ++rank) {
    const Bits value = scaled(rank);
    if (trial.op.op == Op::prod) {
      total *= value;
    } else if (trial.op.op == Op::min) {
      total = less(value, total) ? value : total;
    } else if (trial.op.op == Op::max) {
      total = less(total, value) ? value : total;
    } else {
      total += value;
    }
  }
  if (trial.op.op != Op::avg) return total;
  if (has_sign) return static_cast<Bits>(static_cast<std::int64_t>(total) / trial.place.ranks);
  return total / static_cast<Bits>(trial.place.ranks);
}

Bits boolean_input(const Trial& trial, int rank, std::size_t index) { return hash_of(trial.number, rank, index) & 1; }

// A sum and a maximum of booleans is "or", a product and a minimum "and".
Bits reduced_boolean(const Trial& trial, std::size_t index) {
  const bool any = trial.op.op == Op::sum || trial.op.op == Op::max;
  for (int rank = 0; rank < trial.place.ranks; ++rank) {
    if ((boolean_input(trial, rank, index) == 1) == any) return any;
  }
  return !any;
}

Bits input(const Trial& trial, int rank, std::size_t index) {
  if (trial.collective.reduces && trial.type.family == Family::floating)
    return encode(floating_input(trial, rank, index), trial.type.datatype);
  if (trial.type.family == Family::boolean) return boolean_input(trial, rank, index);
  return trial.collective.reduces ? integer_input(trial, rank, index) : hash_of(trial.number, rank, index);
}

Bits expected(const Trial& trial, std::size_t index) {
  const Origin origin = trial.collective.origin(trial.layout, trial.place, index);
  if (origin.rank != Origin::kEveryRank) return input(trial, origin.rank, origin.index);
  switch (trial.type.family) {
    case Family::floating:
      return encode(reduced_floating(trial, origin.index), trial.type.datatype);
    case Family::boolean:
      return reduced_boolean(trial, origin.index);
    default:
      return reduced_integer(trial, origin.index);
  }
}

}  // namespace

static_assert(std::endian::native == std::endian::little, "elements are compared by their low bytes");

std::uint64_t hash_of(std::uint64_t trial, int rank, std::size_t index) {
  const std::uint64_t stream = mix(0x9e3779b97f4a7c15 * (trial + 1) + static_cast<std::uint64_t>(rank));
  return mix(stream + 0x9e3779b97f4a7c15 * index);
}

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
