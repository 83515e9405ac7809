// Introduction: the facts about a lane that the members of a column exchange before its first call.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "wire/transport.h"

namespace fccl::core {

// Plain bytes that the leaders of the hosts carry from every member to every other; every other member gets the same bytes.
struct Introduction {
  static constexpr int kMostRails = 32;

  struct Rail {
    uint32_t address_bytes = 0;
    std::array<std::byte, Transport::kAddressBytes> address{};
    RemoteMemory landing;
  };

  // Must be equal in all members, else the lanes do not connect.
  int32_t members = 0;
  int32_t window = 0;
  uint64_t slot_bytes = 0;
  // The limits of this member.
  uint64_t write_bytes = 0;
  uint64_t payload_bytes = 0;
  int32_t immediate_bits = 0;
  int32_t rails = 0;
  // The member's peers put these into immediates and messages: its channels, one for each peer in the order of members.
  uint32_t first_channel = 0;
  // Each of the member's peers must put this into its messages to it.
  uint64_t token = 0;
  std::array<Rail, kMostRails> rail{};
};
static_assert(std::is_trivially_copyable_v<Introduction>);

}  // namespace fccl::core
