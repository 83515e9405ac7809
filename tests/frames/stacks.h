// Stacks: what calls memcpy in this process, frame by frame.
#pragma once

#include <string>
#include <vector>

namespace fccl::core::testing {

// One function on the stack, without its parameters and the namespace of the library, and where it stands.
struct Frame {
  std::string name;
  std::string file;
};

// While it lives, the stacks of this thread's calls of memcpy are kept, each once. One thread uses it, and one at a
// time exists.
class Recording {
 public:
  Recording();
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  // The stacks between `outermost` and memcpy, outermost first. Ends the recording.
  std::vector<std::vector<Frame>> below(const std::string& outermost);
};

}  // namespace fccl::core::testing
