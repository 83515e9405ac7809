// The table of flags: what each is called, what --help says of it, and how its value is read.
#pragma once

#include <span>

#include "arguments.h"

namespace fccl::perf {

enum class Taken {
  yes,
  bad_value,
  bad_size,         // a value that is no size
  impossible_here,  // a value that nccl-tests knows and that means nothing here
};

struct Flag {
  int key;            // its letter, or a number above all letters
  const char* name;   // after "--"
  const char* value;  // what --help calls its value; null if it takes none
  const char* text;
  Taken (*take)(Arguments& arguments, const char* text);
};

// Flags below this key have a letter; those from it on are FCCL's own.
constexpr int kFirstOwnFlag = 256;

std::span<const Flag> flags();

}  // namespace fccl::perf
