// The catalog as the parameter of tests, and the steps of all members of a group.
#pragma once

#include <gtest/gtest.h>

#include <ostream>
#include <string>

#include "base/call.h"
#include "plan/catalog.h"
#include "plan/project.h"

namespace fccl::core::plan {

// Without it a test's name would show the bytes of its parameter, addresses among them.
inline void PrintTo(const Algorithm<Project>& algorithm, std::ostream* out) {
  *out << name_of(algorithm.collective) << "_" << algorithm.name;
}

inline std::string name_of_case(const ::testing::TestParamInfo<Algorithm<Project>>& info) {
  return ::testing::PrintToString(info.param);
}

inline std::vector<Steps> steps_of_all(void (*tell)(Group, Project&), Group group) {
  std::vector<Steps> members;
  for (int member = 0; member < group.members; ++member) {
    Project sink(group, member);
    tell(group, sink);
    members.push_back(sink.take());
  }
  return members;
}

}  // namespace fccl::core::plan
