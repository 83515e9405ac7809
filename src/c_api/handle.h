// The handle behind fcclComm_t.
#pragma once

#include <memory>
#include <vector>

#include "base/layout.h"
#include "base/result.h"
#include "communicator/communicator.h"
#include "communicator/loans.h"
#include "communicator/pending_communicator.h"
#include "fccl/fccl.h"

// Arguments of fcclCommRegister; the handle is its address.
struct fcclRegistration {
  void* buffer;
  size_t bytes;
};

struct fcclComm {
  std::unique_ptr<fccl::core::Communicator> communicator;
  // Blocks and ranges of the call that is being issued, where blocks have counts of their own; they stay here so that no call
  // allocates.
  fccl::core::UnevenBlocks blocks{};
  std::vector<fccl::core::ByteRange> ranges{};
  std::unique_ptr<fccl::core::PendingCommunicator> pending{};  // null: the communicator has existed from the beginning
  fccl::core::Loans loans{};
  std::vector<std::unique_ptr<fcclRegistration>> registrations{};
};

namespace fccl::core {

// Returns an error unless the communicator of a handle exists. With config.blocking = 0 a thread may still be making it, or may
// have failed to.
inline Result<void> check_made(const fcclComm* comm) { return comm->pending ? comm->pending->check() : Result<void>{}; }

// Returns an error unless the communicator takes calls: it does not while a background thread makes another one from it, and
// issues its calls.
inline Result<void> check_free(const fcclComm* comm) {
  FCCL_TRY(check_made(comm));
  if (!comm->loans.any()) [[likely]]
    return {};
  return fail(
      fcclInvalidUsage,
      "a communicator is still being made of this one (config.blocking = 0): ask fcclCommGetAsyncError of that one until "
      "it does not say fcclInProgress any more");
}

// True if a call that makes a communicator waits until it is made.
inline bool waits(const fcclConfig_t* config) { return config == nullptr || config->blocking != 0; }

// Settings of the environment, overridden by what the user's config says; `parent` may be null.
Result<CreateOptions> options_of(const fcclConfig_t* config, const CreateOptions* parent);

}  // namespace fccl::core
