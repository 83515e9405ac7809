// Receives: the buffers for peers' messages.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "ofi/regions.h"

namespace fccl::core::ofi {

// The message buffers of one rail: each belongs to libfabric, or until the rail's next poll to the reader of its message, or is
// idle because libfabric takes no more. The rail owns it, and closes its endpoint first; one thread at a time.
class Receives {
 public:
  explicit Receives(size_t message_bytes) : message_bytes_(message_bytes) {}

  Result<void> reserve(const Endpoint& endpoint, int more);
  // Gives libfabric all buffers that readers have, or that are idle.
  Result<void> post(const Endpoint& endpoint);
  // Returns the bytes that came into a buffer which libfabric gave back.
  std::span<const std::byte> take(void* context, size_t bytes);
  bool owns(const void* context) const;

 private:
  // libfabric names a buffer by its address; the first member is libfabric's own.
  struct Buffer {
    fi_context2 context{};
    std::byte* bytes = nullptr;
    void* descriptor = nullptr;
  };
  struct Slab {
    std::unique_ptr<std::byte[]> bytes;
    std::vector<Buffer> buffers;
    Region region;
  };

  size_t message_bytes_;
  // A deque, since buffers must not move.
  std::deque<Slab> slabs_;
  std::vector<Buffer*> idle_;
};

}  // namespace fccl::core::ofi
