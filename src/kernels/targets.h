// Selects the instruction sets that kernels are compiled for. Include it before any header of Highway.
#pragma once

// Three sets are enough on x86: the plain one, AVX2 and AVX-512. No processor of today stops at SSE4. Sets whose vector length
// is known only at run time are left out, since such vectors cannot be members.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)

// Highway disables its plain target because g++ 12 miscompiles the upper half of an integer product (GCC bug 106322). This line
// enables it: no kernel uses that product, and the tests hold the plain target to the same bits.
#define HWY_BROKEN_EMU128 0
