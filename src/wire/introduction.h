// Introduction: what the members of a column tell each other of a lane before its first call.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "wire/transport.h"

namespace fccl {

// Plain bytes that the leaders of the hosts carry from every member to every other; the same for all of them.
struct Introduction {
  static constexpr int kMostRails = 32;

  struct Rail {
    uint32_t address_bytes = 0;
    std::array<std::byte, Transport::kAddressBytes> address{};
    RemoteMemory landing;
  };

  // Equal in all members, else the lanes do not connect.
  int32_t members = 0;
  int32_t window = 0;
  uint64_t slot_bytes = 0;
  // What this member can do.
  uint64_t write_bytes = 0;
  uint64_t payload_bytes = 0;
  int32_t immediate_bits = 0;
  int32_t rails = 0;
  // What the member's peers call it by, in immediates and messages: its channels, one for each peer in the order of members.
  uint32_t first_channel = 0;
  // What each of the member's peers must say in its messages to it.
  uint64_t token = 0;
  std::array<Rail, kMostRails> rail{};
};
static_assert(std::is_trivially_copyable_v<Introduction>);

}  // namespace fccl
