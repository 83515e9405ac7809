// Grow: how the ranks of a communicator and new ones make a larger one, and the id by which the new ones come.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "base/call.h"
#include "bootstrap/bootstrap.h"
#include "creation/create_options.h"
#include "operations/control.h"
#include "system/forks.h"
#include "system/wait_limit.h"

namespace fccl {

struct Parts;

// A unique id that a rank of a communicator has made for a larger one, served by a thread of this process. Owned by that rank's
// communicator; one thread at a time. Unless it was spent, its end turns away whoever has come; not in a fork.
class Invitation {
 public:
  static Result<std::unique_ptr<Invitation>> open(const Settings& settings);
  ~Invitation();
  Invitation(const Invitation&) = delete;
  Invitation& operator=(const Invitation&) = delete;

  const UniqueId& id() const { return id_; }
  // The ranks meet by it: what becomes of it now, they decide.
  void spend() { service_ = {}; }

 private:
  Invitation(const UniqueId& id, Descriptor service) : id_(id), service_(std::move(service)) {}

  UniqueId id_;
  Descriptor service_;  // to shut it ends the service
  unsigned forks_ = forks();
};

// Lives during one call of grow, on the thread that issues the parent's calls, of which it makes one, by which all ranks of the
// parent learn the id. That call's failure is the parent's, too; what fails later leaves the parent as it was.
class Grow {
 public:
  // Runs a call of the parent, of `ranks` ranks.
  using Run = std::function<Result<void>(const Call& call)>;
  Grow(Control& parent, int ranks, Run run, CancelCheck cancel_check)
      : parent_(parent), ranks_(ranks), run_(std::move(run)), cancel_check_(std::move(cancel_check)) {}

  // By which id the ranks of the parent become some of `ranks`; the same, or an error, on all of them. `id`: the one that this
  // rank knows, if any.
  Result<UniqueId> agree(int ranks, const std::optional<UniqueId>& id);
  // This rank's parts of the communicator of `ranks`, in which it keeps its number.
  Result<std::unique_ptr<Parts>> join(const UniqueId& id, int ranks, const CreateOptions& options);

 private:
  Result<void> check_parent();

  Control& parent_;
  int ranks_;
  Run run_;
  CancelCheck cancel_check_;
};

}  // namespace fccl
