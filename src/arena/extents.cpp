// Keeps free extents by offset and by size, for best fit with coalescing.
#include "arena/extents.h"

#include <iterator>

#include "base/rounding.h"

namespace fccl::core {

Extents::Extents(size_t begin, size_t end) {
  if (begin < end) add_free(begin, end - begin);
}

std::optional<size_t> Extents::take(size_t bytes, size_t alignment) {
  for (auto candidate = by_size_.lower_bound({bytes, 0}); candidate != by_size_.end(); ++candidate) {
    const auto [length, begin] = *candidate;
    const size_t offset = rounded_up(begin, alignment);
    if (offset - begin > length - bytes) continue;
    remove_free(free_.find(begin));
    if (offset > begin) add_free(begin, offset - begin);
    if (begin + length > offset + bytes) add_free(offset + bytes, begin + length - offset - bytes);
    taken_[offset] = bytes;
    taken_bytes_ += bytes;
    return offset;
  }
  return std::nullopt;
}

std::optional<ByteRange> Extents::give_back(size_t offset) {
  const auto found = taken_.find(offset);
  if (found == taken_.end()) return std::nullopt;
  ByteRange range{offset, found->second};
  taken_.erase(found);
  taken_bytes_ -= range.bytes;
  const auto behind = free_.lower_bound(offset);
  if (behind != free_.begin()) {
    const auto before = std::prev(behind);
    if (before->first + before->second == offset) {
      range = {before->first, before->second + range.bytes};
      remove_free(before);
    }
  }
  if (behind != free_.end() && range.offset + range.bytes == behind->first) {
    range.bytes += behind->second;
    remove_free(behind);
  }
  add_free(range.offset, range.bytes);
  return range;
}

void Extents::add_free(size_t offset, size_t bytes) {
  free_.emplace(offset, bytes);
  by_size_.emplace(bytes, offset);
}

void Extents::remove_free(std::map<size_t, size_t>::iterator extent) {
  by_size_.erase({extent->second, extent->first});
  free_.erase(extent);
}

}  // namespace fccl::core
