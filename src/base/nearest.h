// nearest: finds the name that somebody meant who misspelled it.
#pragma once

#include <span>
#include <string_view>

namespace fccl::core {

// Returns the name that the fewest changed, added or removed letters turn into `word`; the first of several. Requires a name.
std::string_view nearest(std::string_view word, std::span<const std::string_view> names);

}  // namespace fccl::core
