// Command: a word that fccl-info takes, and the function that answers it.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace fccl::core {

// How an answer is written.
enum class Form { text, json };

using Words = std::span<const std::string>;

// One row of the table of commands. `run` gets the words behind the command, without --json. Its error has the code
// fcclInvalidArgument if a word is wrong.
struct Command {
  std::string_view name;
  size_t fewest_words, most_words;
  bool has_json;
  Result<std::string> (*run)(Words words, Form form);
};

}  // namespace fccl::core
