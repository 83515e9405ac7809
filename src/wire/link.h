// WireLink: how a member of a wire lane reaches one of its peers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "wire/stripes.h"
#include "wire/transport.h"

namespace fccl::core {

// The lane owns it, and fills it in when it connects; it does not change any more.
struct WireLink {
  struct Rail {
    PeerId peer{};
    RemoteMemory landing;
  };

  SharedRails rails;
  uint32_t channel = 0;       // the peer's number for this member
  uint64_t token = 0;         // the token that the peer expects from this member
  size_t landing_offset = 0;  // offset of this member's slots in the peer's landing
  std::vector<Rail> rail;
};

}  // namespace fccl::core
