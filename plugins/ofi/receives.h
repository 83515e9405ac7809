// Receives: buffers that wait for peers' messages.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "ofi/regions.h"

namespace fccl::ofi {

// The message buffers of one rail: each is with libfabric, with the reader of its message until the rail's next poll, or waits
// because libfabric takes no more. Owned by the rail, whose endpoint goes first; one thread at a time.
class Receives {
 public:
  explicit Receives(size_t message_bytes) : message_bytes_(message_bytes) {}

  Result<void> reserve(const Endpoint& endpoint, int more);
  // Gives libfabric all that are with readers or wait.
  Result<void> post(const Endpoint& endpoint);
  // What has come into a buffer that libfabric gave back.
  std::span<const std::byte> take(void* context, size_t bytes);
  bool owns(const void* context) const;

 private:
  // What libfabric knows a buffer by; first its own part.
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
  // Buffers do not move.
  std::deque<Slab> slabs_;
  std::vector<Buffer*> idle_;
};

}  // namespace fccl::ofi
