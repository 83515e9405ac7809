// The loops of the limit: copies and sums of floats, each of several kinds, and which of them is the fastest here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "arguments.h"
#include "launch/processes.h"

namespace fccl::perf {

enum class LoopKind : std::uint8_t {
  plain,
  prefetched,  // asks early for lines that it will read, and for those that it will write
  streamed,    // writes past the caches
};

void copy_as(LoopKind kind, std::byte* to, const std::byte* from, std::size_t bytes);
// `count` floats, each the sum of those in its place of all that begin at from[0] to from[ranks - 1], in this order. `to` may
// be one of them.
void sum_as(LoopKind kind, std::byte* to, const std::byte* const* from, int ranks, std::size_t count);

// Of calls of a size: plain ones below `from` bytes.
struct SizedLoop {
  LoopKind kind = LoopKind::plain;
  std::size_t from = 0;

  LoopKind of(std::size_t bytes) const { return bytes < from ? LoopKind::plain : kind; }
};

struct LoopChoice {
  SizedLoop copies = {};
  SizedLoop sums = {};

  // "copies plain, from 1M prefetched; sums plain"
  std::string text() const;
};

// Tries the kinds on memory such as the run's calls will use, up to its largest size, in all processes at once; the same
// everywhere.
LoopChoice choose_loops(const Processes& processes, const Arguments& arguments);

}  // namespace fccl::perf
