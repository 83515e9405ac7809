// The steps of all members of a group.
#pragma once

#include "plan/catalog.h"
#include "plan/project.h"

namespace fccl::plan {

inline std::vector<Steps> steps_of_all(void (*tell)(Group, Project&), Group group) {
  std::vector<Steps> members;
  for (int member = 0; member < group.members; ++member) {
    Project sink(group, member);
    tell(group, sink);
    members.push_back(sink.take());
  }
  return members;
}

}  // namespace fccl::plan
