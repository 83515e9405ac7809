// Runs the making of a communicator, new or from another one: now, at the end of a group, or in the background.
#pragma once

#include <functional>
#include <memory>

#include "base/result.h"
#include "communicator/pending_communicator.h"
#include "fccl/fccl.h"

namespace fccl::core {

class Communicator;

// Returns the handle of a communicator that a thread of its own makes.
Result<fcclComm_t> begin_making(PendingCommunicator::Make make);
// Makes now, or at the end of the open group.
fcclResult_t make_or_group(const char* function, std::function<Result<void>()> make);

// Makes a communicator from a handle's communicator; nullptr if this rank gets none.
using Derive = std::function<Result<std::unique_ptr<Communicator>>(Communicator& parent, const CancelCheck& cancel_check)>;

// Does what fcclCommSplit, fcclCommShrink and fcclCommGrow share, and sets *newcomm. `waits`: makes it now, not in the
// background.
fcclResult_t derive(const char* function, fcclComm_t parent, fcclComm_t* newcomm, const Derive& make, bool waits);

}  // namespace fccl::core
