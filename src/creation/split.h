// Split: divides the ranks of a communicator into new communicators, one for each color.
#pragma once

#include <functional>
#include <memory>

#include "base/call.h"
#include "creation/create_options.h"
#include "health/control.h"
#include "waiting/wait_limit.h"

namespace fccl::core {

struct CommunicatorState;

// Lives during one call of split, on the thread that issues the parent's calls. It makes two such calls. A failure fails the
// parent, too.
class Split {
 public:
  // Runs a call of the parent, of `ranks` ranks.
  using Run = std::function<Result<void>(const Call& call)>;
  Split(Control& parent, int rank, int ranks, Run run, CancelCheck cancel_check)
      : parent_(parent), rank_(rank), ranks_(ranks), run_(std::move(run)), cancel_check_(std::move(cancel_check)) {}

  // Returns this rank's state in the communicator of its color; nullptr for a color below zero.
  Result<std::unique_ptr<CommunicatorState>> make(int color, int key, const CreateOptions& options);

 private:
  struct Color;
  Result<Color> choose(int color, int key);
  Result<void> exchange(const void* mine, void* all, size_t bytes);
  Result<std::unique_ptr<CommunicatorState>> meet(Color& color, const CreateOptions& options);
  Error fail_parent(const Color& color, Error error);
  std::optional<Error> failure();

  Control& parent_;
  int rank_;
  int ranks_;
  Run run_;
  CancelCheck cancel_check_;
};

}  // namespace fccl::core
