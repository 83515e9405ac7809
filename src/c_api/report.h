// Says how an Error crosses the boundary of the C interface.
#pragma once

#include <string>
#include <utility>

#include "base/result.h"
#include "fccl/fccl.h"

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

}  // namespace fccl::core
