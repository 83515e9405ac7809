// Grow: adds new ranks to those of a communicator, and makes the id by which the new ones join.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "base/call.h"
#include "bootstrap/bootstrap.h"
#include "creation/create_options.h"
#include "health/control.h"
#include "os/forks.h"
#include "waiting/wait_limit.h"

namespace fccl::core {

struct CommunicatorState;

// Holds a unique id that a rank of a communicator has made for a larger one; a thread of this process serves it. The
// communicator of that rank owns it; one thread at a time. Its destructor turns away the ranks that have joined, unless the id
// was spent; a fork's does not.
class Invitation {
 public:
  static Result<std::unique_ptr<Invitation>> open(const Settings& settings);
  ~Invitation();
  Invitation(const Invitation&) = delete;
  Invitation& operator=(const Invitation&) = delete;

  const UniqueId& id() const { return id_; }
  // The ranks now meet by this id: they decide what becomes of it.
  void spend() { service_ = {}; }

 private:
  Invitation(const UniqueId& id, Descriptor service) : id_(id), service_(std::move(service)) {}

  UniqueId id_;
  Descriptor service_;  // shutting it ends the service
  unsigned forks_ = forks();
};

// Lives during one call of grow, on the thread that issues the parent's calls. It makes one such call, by which all ranks of
// the parent learn the id. A failure of that call fails the parent, too; a later failure leaves the parent as it was.
class Grow {
 public:
  // Runs a call of the parent, of `ranks` ranks.
  using Run = std::function<Result<void>(const Call& call)>;
  Grow(Control& parent, int ranks, Run run, CancelCheck cancel_check)
      : parent_(parent), ranks_(ranks), run_(std::move(run)), cancel_check_(std::move(cancel_check)) {}

  // Returns the id by which the ranks of the parent become some of `ranks`; all of them get the same id, or an error. `id`: the
  // one that this rank knows, if any.
  Result<UniqueId> agree(int ranks, const std::optional<UniqueId>& id);
  // Returns this rank's state in the communicator of `ranks`, in which it keeps its number.
  Result<std::unique_ptr<CommunicatorState>> join(const UniqueId& id, int ranks, const CreateOptions& options);

 private:
  Result<void> check_parent();

  Control& parent_;
  int ranks_;
  Run run_;
  CancelCheck cancel_check_;
};

}  // namespace fccl::core
