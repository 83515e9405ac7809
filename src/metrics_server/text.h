// The text of pages, in the exposition format of Prometheus, version 0.0.4.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "metrics/page_copy.h"

namespace fccl::core::metrics {

// `now_ms` is on the clock of to_ms. The ages of waiting calls are relative to it.
std::string text_of(std::span<const PageCopy> pages, uint64_t now_ms);

}  // namespace fccl::core::metrics
