// Draws random inputs and compares with a sum, product or average in a wider type.
#include "accuracy.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace fccl::perf {
namespace {

// The terms of a sum lie in (0, 1]; the factors of a product are near 1, so that it stays in range.
double random_input(const Trial& trial, int rank, std::size_t index) {
  const double uniform = static_cast<double>((hash_of(trial.number, rank, index) >> 11) + 1) * 0x1p-53;
  const double value = trial.op.op == Op::prod ? 0.75 + 0.5 * uniform : uniform;
  return decode(encode(value, trial.type.datatype), trial.type.datatype);
}

template <class Wide>
Wide reference(const Trial& trial, std::size_t index) {
  const auto scaled = [&](int rank) -> Wide {
    return static_cast<Wide>(random_input(trial, rank, index)) * (trial.op.scaled ? scalar_of(rank) : 1);
  };
  Wide total = scaled(0);
  for (int rank = 1; rank < trial.place.ranks; ++rank) {
    if (trial.op.op == Op::prod) {
      total *= scaled(rank);
    } else {
      total += scaled(rank);
    }
  }
  return trial.op.op == Op::avg ? total / static_cast<Wide>(trial.place.ranks) : total;
}

template <class Wide>
double error_of(const Trial& trial, double got, std::size_t index) {
  const Wide wanted = reference<Wide>(trial, index);
  const FloatRange range = range_of(trial.type.datatype);
  const int exponent = std::ilogb(wanted);
  if (exponent >= range.max_exponent) return 0;  // near or beyond the type's largest number: overflow is not rounding
  const Wide unit = std::ldexp(Wide{1}, std::max(exponent, range.min_exponent) - (range.precision - 1));
  const auto error = static_cast<double>(std::fabs(static_cast<Wide>(got) - wanted) / unit);
  return std::isnan(error) ? INFINITY : error;
}

}  // namespace

bool rounds(const Trial& trial) {
  return trial.collective.reduces && trial.type.family == Family::floating && trial.op.op != Op::min && trial.op.op != Op::max;
}

void fill_random(const Trial& trial, std::byte* send) {
  for (std::size_t index = 0; index < trial.layout.send_count; ++index) {
    const Bits bits = encode(random_input(trial, trial.place.rank, index), trial.type.datatype);
    std::memcpy(send + index * trial.type.bytes, &bits, trial.type.bytes);
  }
}

double largest_error(const Trial& trial, const std::byte* recv) {
  double largest = 0;
  const std::size_t first = trial.collective.origin(trial.layout, trial.place, 0).first;
  for (std::size_t index = 0; index < trial.layout.recv_count; ++index) {
    Bits bits = 0;
    std::memcpy(&bits, recv + index * trial.type.bytes, trial.type.bytes);
    const double got = decode(bits, trial.type.datatype);
    largest = std::max(largest, trial.type.datatype == fcclFloat64 ? error_of<long double>(trial, got, first + index)
                                                                   : error_of<double>(trial, got, first + index));
  }
  return largest;
}

}  // namespace fccl::perf
