// Reduction kernels: the elementwise sum, product, average, minimum, maximum, and, or and exclusive or of several sources, in
// the written order.
#pragma once

#include <cstddef>
#include <string>

#include "base/dtype.h"

namespace fccl::core {

struct Signature;

// out[i] = op over s of sources[s][i], for i < count, where s runs over `source_count` sources, 1 to 65536.
//
// The order is a binary tree over the sources, split at the largest power of two below their number (7 = 4 + 3, 3 = 2 + 1).
// Floats of 8, 16 and 32 bits are merged in float32 and float64 in float64, and rounded once at the end, to nearest; integers
// wrap. avg divides the sum by source_count at the end (integers truncate towards zero); premul_sum multiplies each source by
// scalars[s] first, in the type it is added in. min and max propagate NaN and keep the first of equal values, -0 and +0 among
// them. A floating-point result that is NaN is always the same one (positive, quiet, no payload; 0x7f in 8-bit floats), so that
// every result has one value to the bit. float8e4m3, which has no infinity, overflows to its largest number. A bool is true if
// its byte is not zero, and results are 0 and 1: sum, max and bor mean or; prod, min and band mean and. Results do not depend
// on the caller's rounding mode or flushing of subnormals. Buffers may have any alignment; `out` may be one of the sources,
// exactly. `scalars` is read by premul_sum only.
//
// A kernel allocates nothing, keeps nothing, and uses 4 KiB of the caller's stack; any thread may call it.
using ReduceKernel = void (*)(void* out, const void* const* sources, int source_count, size_t count, const Scalar* scalars);

// Returns the kernel of an operator for a data type, in the best instruction set of this processor. Returns nullptr for an
// unknown type, for avg and premul_sum of bool, and for band, bor and bxor of floats.
ReduceKernel reduce_kernel(fcclDataType_t dtype, ReduceOp op);

// Says why a type has no kernel for an operator.
std::string no_kernel(fcclDataType_t dtype, ReduceOp op);
// Returns a kernel from float16, bfloat16 and float8 to float32, without the final rounding of reduce_kernel. `out` must not
// overlap a source. Returns nullptr for other types.
ReduceKernel float32_kernel(fcclDataType_t dtype, ReduceOp op);
// Returns the kernel of a call within a host; nullptr if the call reduces nothing.
ReduceKernel kernel_of(const Signature& signature);

// A sum between hosts has two levels: each host reduces its own ranks' sources to a partial, then the partials of all hosts are
// reduced to the total. Both levels follow the rules of ReduceKernel, with the exceptions below.

// The type of partials between hosts. `call`: the call's own type, rounded at each level. `float32`: float32 for a narrower
// float, so that only the total is rounded; any other type stays as it is.
enum class WireType : uint8_t { call, float32 };

// The type of the partials of a call on `dtype`.
fcclDataType_t partial_type(fcclDataType_t dtype, WireType wire);

// Reduces sources of `dtype` to a partial. avg only adds. `out` may be one of the sources if the types have equal sizes;
// otherwise it must not overlap any.
ReduceKernel partial_kernel(fcclDataType_t dtype, ReduceOp op, WireType wire);

// Reduces partials to a total of `dtype`. premul_sum only adds. avg divides by scalars[0].bits, the number of ranks of all
// hosts, 1 to 2^24. `out` may begin where one source begins, and overlaps nothing else.
//
// A total has the bits of reduce_kernel over all ranks' sources in the order of hosts, if partials are not rounded and all
// hosts have the same number of ranks, a power of two.
ReduceKernel total_kernel(fcclDataType_t dtype, ReduceOp op, WireType wire);

}  // namespace fccl::core
