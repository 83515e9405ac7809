// What the files of the C interface share: the handle behind fcclComm_t, and how an Error crosses the boundary.
#pragma once

#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "c_api/derive.h"
#include "c_api/making.h"
#include "communicator/communicator.h"

// What fcclCommRegister has been given; the handle is its address.
struct fcclRegistration {
  void* buffer;
  size_t bytes;
};

struct fcclComm {
  std::unique_ptr<fccl::Communicator> communicator;
  // Of the call that is being issued, where blocks have counts of their own; here so that no call allocates.
  fccl::UnevenBlocks blocks{};
  std::vector<fccl::ByteRange> ranges{};
  std::unique_ptr<fccl::Making> making{};  // null: the communicator has been there from the beginning
  fccl::Loans loans{};
  std::vector<std::unique_ptr<fcclRegistration>> registrations{};
};

namespace fccl {

// Keeps the text for fcclGetLastError(NULL), after the name of the function unless that is empty, and returns the code. A group
// of this thread that is open will issue nothing, unless the error is of an operation that was issued before.
fcclResult_t report(const char* function, const Error& error);

template <class T>
fcclResult_t report(const char* function, const Result<T>& result) {
  return result ? fcclSuccess : report(function, result.error());
}

inline fcclResult_t refuse(const char* function, std::string why) {
  return report(function, {fcclInvalidArgument, std::move(why)});
}

// For calls that wait for the worker.
inline fcclResult_t refuse_in_host_function(const char* function) {
  return report(function,
                {fcclInvalidUsage,
                 "a host function may not wait for a stream, make a blocking call or end a communicator: issue the call on a "
                 "stream of its own; fcclCommRevoke does not wait"});
}

// Whether the communicator of a handle is there. With config.blocking = 0 it may still be being made, or may have failed to be.
inline Result<void> check_made(const fcclComm* comm) { return comm->making ? comm->making->check() : Result<void>{}; }

// Whether it takes calls: while another one is made of it in the background that issues them.
inline Result<void> check_free(const fcclComm* comm) {
  FCCL_TRY(check_made(comm));
  if (!comm->loans.any()) [[likely]]
    return {};
  return fail(
      fcclInvalidUsage,
      "a communicator is still being made of this one (config.blocking = 0): ask fcclCommGetAsyncError of that one until "
      "it does not say fcclInProgress any more");
}

// Whether a call that makes a communicator waits until it is made.
inline bool waits(const fcclConfig_t* config) { return config == nullptr || config->blocking != 0; }

// Why a type has no kernel for an operator.
inline std::string no_kernel(fcclDataType_t dtype, ReduceOp op) {
  const char* what = dtype == fcclBool
                         ? "truth values have sum, max and bor, which are or, prod, min and band, which are and, and bxor"
                         : "band, bor and bxor are of integers and of bool";
  return fmt::format("{} of {} has no meaning: {}", name_of(op), name_of(dtype), what);
}

// The stream of a call on CPU memory. What is none is not read: it may be a stream of CUDA's.
Result<Stream*> host_stream_of(fcclStream_t stream);

// Settings of the environment, overridden by what the user's config says; `parent` may be null.
Result<CreateOptions> options_of(const fcclConfig_t* config, const CreateOptions* parent);

}  // namespace fccl
