// against_measured: what the models say of the shapes that were measured, and how far they are off.
#pragma once

#include <string>

namespace fccl::core::model {

// Returns the section of the page.
std::string against_measured();

}  // namespace fccl::core::model
