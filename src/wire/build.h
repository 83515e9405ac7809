// Identifies builds of FCCL: libfccl and a plug-in exchange C++ types, so both must be of one build.
#pragma once

#include "fccl/fccl.h"

#define FCCL_TEXT_OF(value) #value
#define FCCL_TEXT(value) FCCL_TEXT_OF(value)

namespace fccl::core {

inline constexpr const char* kBuild =
    "fccl " FCCL_TEXT(FCCL_MAJOR) "." FCCL_TEXT(FCCL_MINOR) "." FCCL_TEXT(FCCL_PATCH) ", compiler " __VERSION__;

}  // namespace fccl::core

#undef FCCL_TEXT
#undef FCCL_TEXT_OF
