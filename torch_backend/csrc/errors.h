// Turns result codes of the library into the exceptions that torch shows to Python.
#pragma once

#include <exception>
#include <string>

#include "fccl/fccl.h"

namespace fccl {

// Throws unless `result` is fcclSuccess: NotImplementedError for what comes later, ValueError for an argument that is wrong on
// its face, torch.distributed.DistBackendError for the rest. The text is "`attempt`: `cause` [code]".
void check(fcclResult_t result, const std::string& attempt, const char* cause);

// The same with this thread's last error as the cause; for the call that has just returned `result`.
void check(fcclResult_t result, const std::string& attempt);

// The exception that check would throw.
std::exception_ptr failure_of(fcclResult_t result, const std::string& attempt, const char* cause);

// Throws NotImplementedError that names what is missing: `what` begins with the backend's name, as the titles of operations do.
[[noreturn]] void throw_not_yet(const std::string& what);

}  // namespace fccl
