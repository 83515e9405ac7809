// Path: the ways that the bytes of a call can take.
#pragma once

#include <cstdint>

namespace fccl::core {

enum class Path : uint8_t { alone, mailbox, mapped, attach, ring, across };

constexpr const char* name_of(Path path) {
  switch (path) {
    case Path::alone:
      return "alone";
    case Path::mailbox:
      return "mailbox";
    case Path::mapped:
      return "mapped";
    case Path::attach:
      return "attach";
    case Path::ring:
      return "ring";
    case Path::across:
      return "across";
  }
  return "?";
}

// How the ranks share the work on a path. blocks: each rank takes or reduces its own blocks. whole: each rank reduces the whole
// vector. shards: each rank reduces a shard, and takes the others' results. of_two: two ranks give each other their vectors.
enum class Variant : uint8_t { blocks, whole, shards, of_two };

}  // namespace fccl::core
