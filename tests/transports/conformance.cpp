// The conformance suite: how its transports are opened.
#include "transports/conformance.h"

namespace fccl {

bool Conformance::open(int processes, int rails, int messages) {
  auto opened = GetParam().open(processes, rails);
  if (!opened) {
    why_not_ = opened.error().message;
    return false;
  }
  start(std::move(*opened), messages);
  return !HasFailure();
}

}  // namespace fccl
