// Provider: the name of a kind of network, as settings write it and hosts compare it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace fccl::core {

inline constexpr size_t kMostProviderLetters = 31;
inline constexpr const char* kFormOfProvider = R"(1 to 31 small letters, digits, "-", "_" or ".")";

// True for "efa" and "my-net.2". The list of names is open: a plug-in gives its own.
inline bool is_provider_name(std::string_view name) {
  return !name.empty() && name.size() <= kMostProviderLetters && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
  });
}

}  // namespace fccl::core
