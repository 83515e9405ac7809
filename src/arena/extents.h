// Extents: which parts of a stretch of memory are free and which are taken, as offsets alone.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/layout.h"

namespace fccl {

// The best fit: the shortest free extent that has room, at its beginning; free extents that touch are one. A value of its
// owner, one thread at a time. What cannot be had changes nothing.
class Extents {
 public:
  // All is free from `begin` to `end`.
  Extents(size_t begin, size_t end);

  // The offset of `bytes` bytes, more than 0, at a multiple of `alignment`, a power of two. Nothing if no free extent has room.
  std::optional<size_t> take(size_t bytes, size_t alignment);
  // Gives back what begins at `offset`. The free extent that it is now part of; nothing if nothing that was taken begins there.
  std::optional<ByteRange> give_back(size_t offset);

  size_t taken() const { return taken_bytes_; }
  // Of the longest one.
  size_t longest_free() const { return by_size_.empty() ? 0 : by_size_.rbegin()->first; }
  // By offset.
  const std::map<size_t, size_t>& free_extents() const { return free_; }

 private:
  void add_free(size_t offset, size_t bytes);
  void remove_free(std::map<size_t, size_t>::iterator extent);

  std::map<size_t, size_t> free_;                // bytes by offset
  std::set<std::pair<size_t, size_t>> by_size_;  // (bytes, offset) of the same
  std::unordered_map<size_t, size_t> taken_;     // bytes by offset
  size_t taken_bytes_ = 0;
};

}  // namespace fccl
