// Extents: tracks which parts of a range of memory are free and which are taken, by offsets alone.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/layout.h"

namespace fccl::core {

// Takes from the beginning of the shortest free extent that has room. Free extents that touch are merged. Used by one thread at
// a time. A request that fails changes nothing.
class Extents {
 public:
  // Begins with everything free from `begin` to `end`.
  Extents(size_t begin, size_t end);

  // Takes `bytes` bytes, at least 1, at a multiple of `alignment`, a power of two. Returns their offset, or nothing if no free
  // extent has room.
  std::optional<size_t> take(size_t bytes, size_t alignment);
  // Frees what was taken at `offset`. Returns the merged free extent, or nothing if nothing was taken there.
  std::optional<ByteRange> give_back(size_t offset);

  size_t taken() const { return taken_bytes_; }
  // Bytes of the longest free extent.
  size_t longest_free() const { return by_size_.empty() ? 0 : by_size_.rbegin()->first; }
  // Sizes by offset.
  const std::map<size_t, size_t>& free_extents() const { return free_; }

 private:
  void add_free(size_t offset, size_t bytes);
  void remove_free(std::map<size_t, size_t>::iterator extent);

  std::map<size_t, size_t> free_;                // bytes by offset
  std::set<std::pair<size_t, size_t>> by_size_;  // the same extents as (bytes, offset)
  std::unordered_map<size_t, size_t> taken_;     // bytes by offset
  size_t taken_bytes_ = 0;
};

}  // namespace fccl::core
