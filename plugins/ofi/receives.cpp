// Posts buffers to libfabric, and finds them again by their context.
#include "ofi/receives.h"

#include <fmt/format.h>
#include <rdma/fi_errno.h>

#include <algorithm>

namespace fccl::core::ofi {

Result<void> Receives::reserve(const Endpoint& endpoint, int more) {
  if (more <= 0) return {};
  const auto count = static_cast<size_t>(more);
  Slab slab{
      .bytes = std::make_unique<std::byte[]>(count * message_bytes_), .buffers = std::vector<Buffer>(count), .region = {}};
  FCCL_TRY_ASSIGN(auto region, open_region(endpoint, std::span(slab.bytes.get(), count * message_bytes_), FI_RECV));
  slab.region = std::move(region);
  idle_.reserve(idle_.capacity() + count);
  for (size_t i = 0; i < count; ++i) {
    slab.buffers[i].bytes = slab.bytes.get() + i * message_bytes_;
    slab.buffers[i].descriptor = slab.region.descriptor;
    idle_.push_back(&slab.buffers[i]);
  }
  slabs_.push_back(std::move(slab));
  return post(endpoint);
}

Result<void> Receives::post(const Endpoint& endpoint) {
  while (!idle_.empty()) {
    Buffer& buffer = *idle_.back();
    const ssize_t number =
        fi_recv(endpoint.handle.get(), buffer.bytes, message_bytes_, buffer.descriptor, FI_ADDR_UNSPEC, &buffer.context);
    if (number == -FI_EAGAIN) return {};
    if (number != 0)
      return fail(fcclSystemError,
                  fmt::format("cannot wait for messages with {}: libfabric says \"{}\"", endpoint.text(), said(number)));
    idle_.pop_back();
  }
  return {};
}

std::span<const std::byte> Receives::take(void* context, size_t bytes) {
  auto* buffer = static_cast<Buffer*>(context);
  idle_.push_back(buffer);
  return {buffer->bytes, bytes};
}

bool Receives::owns(const void* context) const {
  return std::ranges::any_of(slabs_, [context](const Slab& slab) {
    return std::ranges::any_of(slab.buffers, [context](const Buffer& buffer) { return &buffer == context; });
  });
}

}  // namespace fccl::core::ofi
