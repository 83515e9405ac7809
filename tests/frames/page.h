// The page of the architecture as the oracle of stacks.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "frames/stacks.h"

namespace fccl::core::testing {

// Expects that no stack that ends with these functions is longer than `most`, and that the page's stack is among them.
void expect_listed(std::vector<std::vector<Frame>> stacks, const std::vector<std::string>& innermost, size_t most);

}  // namespace fccl::core::testing
