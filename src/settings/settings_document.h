// The page that documents the settings.
#pragma once

#include <string>

namespace fccl::core {

// Returns docs/reference/environment.md, made from the table of settings.
std::string settings_document();

}  // namespace fccl::core
