// Verifying: whether device memory holds the pattern that it must hold.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device.h"

namespace fccl::gpu {

// The words that are not those of the pattern with this seed. Waits for the stream.
unsigned long long wrong_words(const Stream& stream, const void* at, size_t bytes, uint32_t seed);

}  // namespace fccl::gpu
