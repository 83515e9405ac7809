// Complaints about the words that a user gave, each in one line with the nearest word that there is.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace fccl::core {

// Returns an error of the code fcclInvalidArgument, with the text.
tl::unexpected<Error> wrong(std::string text);
// Returns such an error: "'--hole' is not an option of gpus; did you mean --hold?".
tl::unexpected<Error> wrong_option(std::string_view word, std::string_view command, std::span<const std::string_view> known);

// Returns the number that the whole text says; nothing for any other text.
std::optional<double> number_in(std::string_view text);

}  // namespace fccl::core
