// What the files of the C interface share: the handle behind fcclComm_t, and how an Error crosses the boundary.
#pragma once

#include <fmt/format.h>

#include <memory>
#include <string>

#include "base/result.h"
#include "communicator/communicator.h"

struct fcclComm {
  std::unique_ptr<fccl::Communicator> communicator;
};

namespace fccl {

// Keeps the text for fcclGetLastError(NULL) and returns the code.
fcclResult_t report(const char* function, const Error& error);

template <class T>
fcclResult_t report(const char* function, const Result<T>& result) {
  return result ? fcclSuccess : report(function, result.error());
}

inline fcclResult_t refuse(const char* function, std::string why) {
  return report(function, {fcclInvalidArgument, std::move(why)});
}

inline fcclResult_t not_yet(const char* function) {
  return report(function, {fcclNotImplemented, "not implemented yet in this version of FCCL"});
}

// Settings of the environment, overridden by what the user's config says; `parent` may be null.
Result<CreateOptions> options_of(const fcclConfig_t* config, const CreateOptions* parent);

}  // namespace fccl
