// Measures how far rounding takes a reduction from the true result, on data that is not crafted to be exact.
#pragma once

#include <cstddef>

#include "verify.h"

namespace fccl::perf {

// True if rounding can show: a sum, product or average of floats.
bool rounds(const Trial& trial);

// Writes this rank's random input. All numbers are positive, so that no cancellation makes small errors look large.
void fill_random(const Trial& trial, std::byte* send);
// The largest distance between an element of the result and the reference, in units in the last place of the type at the
// reference. The reference is computed in double, for double in long double. 0.5 means correct rounding; infinity means that
// the result is not a number.
double largest_error(const Trial& trial, const std::byte* recv);

}  // namespace fccl::perf
