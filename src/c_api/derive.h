// Runs the making of a communicator, new or from another one: now, at the end of a group, or in the background.
#pragma once

#include <atomic>
#include <functional>
#include <memory>

#include "base/result.h"
#include "communicator/communicator.h"
#include "communicator/pending_communicator.h"
#include "fccl/fccl.h"
#include "os/forks.h"
#include "waiting/wait_limit.h"

namespace fccl::core {

// Counts how many communicators are being made in the background from a handle's communicator. Each making uses it as the
// thread that issues its calls. Any thread may ask; the thread of each making gives its loan back. The destructor runs before
// the communicator's, and waits until no loan is left. In a fork it does not wait, since nothing makes them there.
class Loans {
 public:
  Loans() = default;
  ~Loans();
  Loans(const Loans&) = delete;
  Loans& operator=(const Loans&) = delete;

  void take() { count_.fetch_add(1, std::memory_order_relaxed); }
  void give_back() { count_.fetch_sub(1, std::memory_order_release); }
  bool any() const { return count_.load(std::memory_order_acquire) != 0; }

 private:
  std::atomic<int> count_{0};
  unsigned forks_ = forks();
};

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
