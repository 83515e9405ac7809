// The loops of the limit: copies and sums of floats, each of several kinds, and the choice of the fastest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "arguments.h"
#include "launch/processes.h"

namespace fccl::perf {

enum class LoopKind : std::uint8_t {
  plain,
  prefetched,  // prefetches lines that it will read, and lines that it will write
  streamed,    // writes past the caches
};

void copy_as(LoopKind kind, std::byte* to, const std::byte* from, std::size_t bytes);
// Sums `ranks` arrays of `count` floats, which begin at from[0] to from[ranks - 1], in this order. `to` may be one of them.
void sum_as(LoopKind kind, std::byte* to, const std::byte* const* from, int ranks, std::size_t count);

// The loop for calls of a size: a plain one below `from` bytes.
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

// Tries the kinds, in all processes at once, on memory like that of the run's calls, up to its largest size; all processes get
// the same choice.
LoopChoice choose_loops(const Processes& processes, const Arguments& arguments);

}  // namespace fccl::perf
