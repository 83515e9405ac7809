// Crafts the numbers, and computes the results with code that shares nothing with the library.
#include "samples.h"

#include <algorithm>
#include <cmath>

namespace fccl::perf {
namespace {

struct Reduction {
  const ElementType& type;
  const Operator& op;
  int ranks;
};

// Only a window of `active` ranks has numbers, another one for every index, so that many ranks cannot make a sum too large.
bool is_active(const Reduction& reduction, int rank, std::size_t sample, int active) {
  if (active == reduction.ranks) return true;
  const auto ranks = static_cast<std::uint64_t>(reduction.ranks);
  const std::uint64_t first = hash_of(0, -1, sample) % ranks;
  return (static_cast<std::uint64_t>(rank) + ranks - first) % ranks < static_cast<std::uint64_t>(active);
}

// Returns an integer of [-limit, limit].
double integer_from(std::uint64_t hash, std::uint64_t limit) {
  return static_cast<double>(static_cast<std::int64_t>(hash % (2 * limit + 1)) - static_cast<std::int64_t>(limit));
}

// Returns 2^e, equal on all ranks, such that numbers of `bits` bits times 2^e are normal and in range.
double scale_of(std::size_t sample, const FloatRange& range, int bits) {
  constexpr int kWidest = 20;  // varied enough, and far from the limits of a product in double
  const int least = std::max(range.min_exponent, -kWidest);
  const int greatest = std::min(range.max_exponent - bits, kWidest);
  const std::uint64_t hash = hash_of(0, -2, sample);
  return std::ldexp(1.0, least + static_cast<int>(hash % static_cast<std::uint64_t>(greatest - least + 1)));
}

// Returns integers times one power of two. They are so small that their sum has no more bits than a significand.
double summand(const Reduction& reduction, int rank, std::size_t sample) {
  const FloatRange range = range_of(reduction.type.datatype);
  const std::uint64_t greatest_sum = (std::uint64_t{1} << range.precision) / (reduction.op.scaled ? 2 : 1);
  const int active = static_cast<int>(std::min<std::uint64_t>(static_cast<std::uint64_t>(reduction.ranks), greatest_sum));
  if (!is_active(reduction, rank, sample, active)) return 0;
  const double integer = integer_from(hash_of(0, rank, sample), greatest_sum / static_cast<std::uint64_t>(active));
  return integer == 0 ? 0 : integer * scale_of(sample, range, range.precision);
}

// Returns a full significand on one rank, another one for every index, and on the others powers of two, most of them 1.
double factor(const Reduction& reduction, int rank, std::size_t sample) {
  const FloatRange range = range_of(reduction.type.datatype);
  const std::uint64_t hash = hash_of(0, rank, sample);
  const double sign = hash & 1 ? -1 : 1;
  const auto chosen = static_cast<int>(hash_of(0, -3, sample) % static_cast<std::uint64_t>(reduction.ranks));
  if (rank == chosen) {
    const double stored = std::ldexp(1.0, range.precision - 1);
    return sign * (1 + static_cast<double>((hash >> 1) % static_cast<std::uint64_t>(stored)) / stored);
  }
  const int room = std::min({-range.min_exponent, range.max_exponent - 1, reduction.ranks});
  return is_active(reduction, rank, sample, room) ? sign * std::ldexp(1.0, static_cast<int>((hash >> 1) % 3) - 1) : sign;
}

// Returns any number of the type but zero: which of the two zeros is the minimum is left to the library's own tests.
double candidate(const Reduction& reduction, int rank, std::size_t sample) {
  const FloatRange range = range_of(reduction.type.datatype);
  const double integer = integer_from(hash_of(0, rank, sample), std::uint64_t{1} << range.precision);
  return (integer == 0 ? 1 : integer) * scale_of(sample, range, range.precision);
}

double floating_input(const Reduction& reduction, int rank, std::size_t sample) {
  switch (reduction.op.op) {
    case Op::prod:
      return factor(reduction, rank, sample);
    case Op::min:
    case Op::max:
      return candidate(reduction, rank, sample);
    default:
      return summand(reduction, rank, sample);
  }
}

double reduced_floating(const Reduction& reduction, std::size_t sample) {
  const auto scaled = [&](int rank) {
    return floating_input(reduction, rank, sample) * (reduction.op.scaled ? scalar_of(rank) : 1);
  };
  double total = scaled(0);
  for (int rank = 1; rank < reduction.ranks; ++rank) {
    const double value = scaled(rank);
    if (reduction.op.op == Op::prod) {
      total *= value;
    } else if (reduction.op.op == Op::min) {
      total = std::min(total, value);
    } else if (reduction.op.op == Op::max) {
      total = std::max(total, value);
    } else {
      total += value;
    }
  }
  if (reduction.op.op != Op::avg) return total;
  // One division of the exact sum, in float except for double.
  if (reduction.type.datatype == fcclFloat64) return total / reduction.ranks;
  return static_cast<float>(total) / static_cast<float>(reduction.ranks);
}

// Returns the low `bytes` of `bits` as the 64-bit integer of that value and signedness.
Bits extended(Bits bits, const ElementType& type) {
  const int unused = 64 - 8 * static_cast<int>(type.bytes);
  if (type.family == Family::signed_integer) return static_cast<Bits>(static_cast<std::int64_t>(bits << unused) >> unused);
  return bits << unused >> unused;
}

Bits integer_input(const Reduction& reduction, int rank, std::size_t sample) {
  const Bits hash = hash_of(0, rank, sample);
  if (reduction.op.op != Op::avg) return extended(hash, reduction.type);
  const bool has_sign = reduction.type.family == Family::signed_integer;
  const Bits greatest_sum = ~Bits{0} >> (64 - 8 * reduction.type.bytes) >> (has_sign ? 1 : 0);
  const auto active = std::min(static_cast<Bits>(reduction.ranks), greatest_sum);
  if (!is_active(reduction, rank, sample, static_cast<int>(active))) return 0;
  const Bits limit = greatest_sum / active;
  const Bits magnitude = (hash >> 1) % limit + 1;
  return has_sign && (hash & 1) ? Bits{0} - magnitude : magnitude;
}

Bits reduced_integer(const Reduction& reduction, std::size_t sample) {
  const bool has_sign = reduction.type.family == Family::signed_integer;
  const auto less = [&](Bits a, Bits b) {
    return has_sign ? static_cast<std::int64_t>(a) < static_cast<std::int64_t>(b) : a < b;
  };
  const auto scaled = [&](int rank) {
    return integer_input(reduction, rank, sample) * (reduction.op.scaled ? static_cast<Bits>(scalar_of(rank)) : 1);
  };
  Bits total = scaled(0);
  for (int rank = 1; rank < reduction.ranks; ++rank) {
    const Bits value = scaled(rank);
    if (reduction.op.op == Op::prod) {
      total *= value;
    } else if (reduction.op.op == Op::min) {
      total = less(value, total) ? value : total;
    } else if (reduction.op.op == Op::max) {
      total = less(total, value) ? value : total;
    } else {
      total += value;
    }
  }
  if (reduction.op.op != Op::avg) return total;
  if (has_sign) return static_cast<Bits>(static_cast<std::int64_t>(total) / reduction.ranks);
  return total / static_cast<Bits>(reduction.ranks);
}

Bits boolean_input(int rank, std::size_t sample) { return hash_of(0, rank, sample) & 1; }

// A sum and a maximum of booleans is "or", a product and a minimum "and".
Bits reduced_boolean(const Reduction& reduction, std::size_t sample) {
  const bool any = reduction.op.op == Op::sum || reduction.op.op == Op::max;
  for (int rank = 0; rank < reduction.ranks; ++rank) {
    if ((boolean_input(rank, sample) == 1) == any) return any;
  }
  return !any;
}

Bits input(const Reduction& reduction, int rank, std::size_t sample) {
  switch (reduction.type.family) {
    case Family::floating:
      return encode(floating_input(reduction, rank, sample), reduction.type.datatype);
    case Family::boolean:
      return boolean_input(rank, sample);
    default:
      return integer_input(reduction, rank, sample);
  }
}

Bits reduced(const Reduction& reduction, std::size_t sample) {
  switch (reduction.type.family) {
    case Family::floating:
      return encode(reduced_floating(reduction, sample), reduction.type.datatype);
    case Family::boolean:
      return reduced_boolean(reduction, sample);
    default:
      return reduced_integer(reduction, sample);
  }
}

}  // namespace

Samples::Samples(const ElementType& type, const Operator& op, int ranks) {
  const Reduction reduction{type, op, ranks};
  inputs_.reserve(static_cast<std::size_t>(ranks) * kCount);
  for (int rank = 0; rank < ranks; ++rank) {
    for (std::size_t sample = 0; sample < kCount; ++sample) inputs_.push_back(input(reduction, rank, sample));
  }
  results_.reserve(kCount);
  for (std::size_t sample = 0; sample < kCount; ++sample) results_.push_back(reduced(reduction, sample));
}

}  // namespace fccl::perf
