// Declares what the files of the C interface share: the handle behind fcclComm_t, and how an Error crosses the boundary.
#pragma once

#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "communicator/communicator.h"
#include "communicator/loans.h"
#include "communicator/pending_communicator.h"

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

// Keeps the text for fcclGetLastError(NULL), after the name of the function unless that is empty, and returns the code. An open
// group of this thread will issue nothing, unless the error is that of an operation issued earlier.
fcclResult_t report(const char* function, const Error& error);

template <class T>
fcclResult_t report(const char* function, const Result<T>& result) {
  return result ? fcclSuccess : report(function, result.error());
}

inline fcclResult_t refuse(const char* function, std::string why) {
  return report(function, {fcclInvalidArgument, std::move(why)});
}

// Refuses calls that wait for the worker.
inline fcclResult_t refuse_in_host_function(const char* function) {
  return report(function,
                {fcclInvalidUsage,
                 "a host function may not wait for a stream, make a blocking call or end a communicator: issue the call on a "
                 "stream of its own; fcclCommRevoke does not wait"});
}

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

// Says why a type has no kernel for an operator.
inline std::string no_kernel(fcclDataType_t dtype, ReduceOp op) {
  const char* what = dtype == fcclBool
                         ? "truth values have sum, max and bor, which are or, prod, min and band, which are and, and bxor"
                         : "band, bor and bxor are of integers and of bool";
  return fmt::format("{} of {} has no meaning: {}", name_of(op), name_of(dtype), what);
}

// Finds the stream of a call on CPU memory. It never dereferences a handle that is not a host stream: it may be a CUDA stream.
Result<Stream*> host_stream_of(fcclStream_t stream);

// Settings of the environment, overridden by what the user's config says; `parent` may be null.
Result<CreateOptions> options_of(const fcclConfig_t* config, const CreateOptions* parent);

}  // namespace fccl::core
