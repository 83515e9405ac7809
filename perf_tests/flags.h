// The table of flags: their names, their help, and how their values are read.
#pragma once

#include <span>

#include "arguments.h"

namespace fccl::perf {

enum class Taken {
  yes,
  bad_value,
  bad_size,         // a value that is not a size
  impossible_here,  // a value that nccl-tests knows and that has no meaning here
};

// Flags below this key have a letter.
constexpr int kFirstOwnFlag = 256;
// The one flag of FCCL's own with a letter.
constexpr int kCsvFlag = 'F';

struct Flag {
  int key;            // its letter, or a number above all letters
  const char* name;   // after "--"
  const char* value;  // name of its value in --help; null if it takes none
  const char* text;
  Taken (*take)(Arguments& arguments, const char* text);

  bool has_letter() const { return key < kFirstOwnFlag; }
  bool is_own() const { return !has_letter() || key == kCsvFlag; }
};

std::span<const Flag> flags();

}  // namespace fccl::perf
