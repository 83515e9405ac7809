// Which instruction sets the kernels are compiled for; included before any header of Highway.
#pragma once

// On x86 the plain one, AVX2 and AVX-512 are enough: SSE4 alone is in no processor of today. Vectors whose length is known only
// at run time cannot be members.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)

// Highway puts aside its plain target because g++ 12 compiles the upper half of an integer product wrongly (GCC bug 106322).
// No kernel takes one, and the tests hold the plain target to the same bits.
#define HWY_BROKEN_EMU128 0
