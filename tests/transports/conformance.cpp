// The conformance suite: how its transports are opened.
#include "transports/conformance.h"

namespace fccl::core {

bool Conformance::open(int number, int rails, int messages) {
  auto opened = GetParam().open(number, rails);
  if (!opened) {
    why_not = opened.error().message;
    return false;
  }
  start(std::move(*opened), messages);
  return !HasFailure();
}

}  // namespace fccl::core
