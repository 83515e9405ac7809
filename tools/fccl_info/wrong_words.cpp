// Finds the nearest word by the letters that differ.
#include "fccl_info/wrong_words.h"

#include <fmt/format.h>

#include <charconv>
#include <utility>

#include "base/nearest.h"

namespace fccl::core {

tl::unexpected<Error> wrong(std::string text) { return fail(fcclInvalidArgument, std::move(text)); }

tl::unexpected<Error> wrong_option(std::string_view word, std::string_view command, std::span<const std::string_view> known) {
  return wrong(fmt::format("'{}' is not an option of {}; did you mean {}?", word, command, nearest(word, known)));
}

std::optional<double> number_in(std::string_view text) {
  double number = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  return fault == std::errc() && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

}  // namespace fccl::core
