// Key: the secret that the ranks of one communicator share, and the hashes that are computed with it.
#pragma once

#include <array>
#include <initializer_list>
#include <span>
#include <string_view>

namespace fccl::core {

using Key = std::array<unsigned char, 32>;
using Digest = std::array<unsigned char, 32>;

// Random bytes that nobody can guess.
void fill_random(std::span<unsigned char> bytes);

// Returns the keyed hash (BLAKE2b) of a label and parts. The label tells uses of one key apart; at most one part may vary in
// length.
Digest digest(const Key& key, std::string_view label, std::initializer_list<std::string_view> parts);

// Compares in constant time. `claimed` has any length; only an equal length can be equal.
bool equal(const Digest& expected, std::string_view claimed);

inline std::string_view view(std::span<const unsigned char> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace fccl::core
