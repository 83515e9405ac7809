// Lets a sleeping wait look for its end now and then.
#include "waiting/wait_limit.h"

#include <algorithm>

#include "waiting/failure_timing.h"

namespace fccl::core {

Deadline WaitLimit::next_look() const { return {std::min(deadline.at, Deadline::after(kLookInterval).at)}; }

}  // namespace fccl::core
