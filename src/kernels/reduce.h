// Reduction kernels: the elementwise sum, product, average, minimum, maximum, and, or and exclusive or of several sources, in
// the written order.
#pragma once

#include <cstddef>

#include "base/call.h"

namespace fccl {

// out[i] = op over s of sources[s][i], for i < count, where s runs over `source_count` sources, 1 to 65536.
//
// The order is a binary tree over the sources, split at the largest power of two below their number (7 = 4 + 3, 3 = 2 + 1).
// Floats of 8, 16 and 32 bits are merged in float32 and float64 in float64, and rounded once at the end, to nearest; integers
// wrap. avg divides the sum by source_count at the end (integers truncate towards zero); premul_sum multiplies each source by
// scalars[s] first, in the type it is added in. min and max propagate NaN and keep the first of equal values, -0 and +0 among
// them. A floating-point result that is NaN is always the same one (positive, quiet, no payload; 0x7f in 8-bit floats), so that
// every result has one value to the bit. float8e4m3, which has no infinity, overflows to its largest number. Of bool any byte
// but zero is true and results are 0 and 1: sum, max and bor are or, prod, min and band are and. None of it depends on the
// caller's rounding mode or flushing of subnormals. Buffers may have any alignment; `out` may be one of the sources, exactly.
// `scalars` is read by premul_sum only.
//
// A kernel allocates nothing, keeps nothing, and uses 4 KiB of the caller's stack; any thread may call it.
using ReduceKernel = void (*)(void* out, const void* const* sources, int source_count, size_t count, const Scalar* scalars);

// The kernel for an operator on a data type, for the best instruction set that this processor has; nullptr for what is no type
// for avg and premul_sum of bool, and for band, bor and bxor of floats.
ReduceKernel reduce_kernel(fcclDataType_t dtype, ReduceOp op);
// The same for sources of float16, bfloat16 and float8 with results in float32: what reduce_kernel would round. `out` overlaps
// no source. nullptr for other types.
ReduceKernel float32_kernel(fcclDataType_t dtype, ReduceOp op);
// What a call reduces with within a host; nullptr where nothing is reduced.
ReduceKernel kernel_of(const Signature& signature);

// A sum between hosts has two levels: each host reduces the sources of its own ranks to a partial, and the partials of all
// hosts are reduced to the total. Each level is a reduction as above, but for what is said here.

// What partials travel as: the call's own type, so that each level rounds, or float32 where the own type is a narrower float,
// so that only the total is rounded.
enum class WireType : uint8_t { call, float32 };

// The type of the partials of a call on `dtype`.
fcclDataType_t partial_type(fcclDataType_t dtype, WireType wire);

// Reduces sources of `dtype` to a partial. avg adds only. `out` is one of the sources at most where the types have equal sizes;
// otherwise it overlaps none.
ReduceKernel partial_kernel(fcclDataType_t dtype, ReduceOp op, WireType wire);

// Reduces partials to a total of `dtype`. premul_sum adds only; avg divides by the number of ranks of all hosts, 1 to 2^24,
// which is scalars[0].bits. `out` may begin where one of the sources does, and overlaps nothing else of any of them.
//
// With partials that are not rounded, and equal numbers of ranks on all hosts that are a power of two, a total has the bits
// that reduce_kernel makes of all the ranks' sources in the order of hosts.
ReduceKernel total_kernel(fcclDataType_t dtype, ReduceOp op, WireType wire);

}  // namespace fccl
