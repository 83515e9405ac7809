// Turns result codes of the library into the exceptions that torch shows to Python.
#pragma once

#include <exception>
#include <string>

#include "fccl/fccl.h"

namespace fccl::torch {

// Throws unless `result` is fcclSuccess: NotImplementedError for unimplemented calls, ValueError for an argument that is wrong
// on its face, torch.distributed.DistBackendError for the rest. The text is "`attempt`: `cause`", and
// ends with a code that docs/reference/errors.md explains.
void check(fcclResult_t result, const std::string& attempt, const char* cause);

// Checks with this thread's last error as the cause; call it right after the call that returned `result`.
void check(fcclResult_t result, const std::string& attempt);

// Throws DistBackendError for a failure of rank 0 that this rank has only heard of: `cause` has its code.
[[noreturn]] void throw_reported(const std::string& attempt, const std::string& cause);

// Returns the exception that check would throw.
std::exception_ptr failure_of(fcclResult_t result, const std::string& attempt, const char* cause);

// Throws NotImplementedError for a missing feature: `what` begins with the backend's name, as the titles of operations do.
[[noreturn]] void throw_not_implemented(const std::string& what);

}  // namespace fccl::torch
