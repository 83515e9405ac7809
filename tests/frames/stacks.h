// Stacks: who calls a function that moves bytes, frame by frame.
#pragma once

#include <string>
#include <vector>

namespace fccl::core::testing {

// One function on the stack, without its parameters and the namespace of the library, and where it stands.
struct Frame {
  std::string name;
  std::string file;
};

// Keeps the stack above so many of its callers, if this thread records. A function that moves bytes calls it.
void keep_stack(int callers);

// While it lives, the stacks of this thread's calls of such functions are kept, each once. One thread uses it, and one at a
// time exists.
class Recording {
 public:
  Recording();
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  // The stacks from `outermost` to the caller of such a function, outermost first, without functions of the C++ library. Ends
  // the recording.
  std::vector<std::vector<Frame>> below(const std::string& outermost);
};

}  // namespace fccl::core::testing
