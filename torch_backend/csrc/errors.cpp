// Words the exceptions, with torch's settings in place of the library's.
#include "errors.h"

#include <c10/util/Exception.h>

#include <string_view>

namespace fccl::torch {

namespace {

// The library's settings of a deadline have no effect here: torch's have.
std::string with_settings_of_torch(std::string text) {
  constexpr std::string_view kOfTheLibrary = "(FCCL_TIMEOUT, timeoutMs, fcclCommSetTimeout)";
  if (const size_t at = text.find(kOfTheLibrary); at != std::string::npos)
    text.replace(at, kOfTheLibrary.size(), "(timeout= of init_process_group or new_group)");
  return text;
}

// Puts the general code of `result` behind a text that does not come from the library: that one's texts end with a code.
std::string with_code(const std::string& text, fcclResult_t result) {
  const size_t at = text.rfind(" [FCCL-");
  const bool has_code = at != std::string::npos && text.find(']', at) == text.size() - 1;
  return has_code ? text : text + c10::str(" [FCCL-", static_cast<int>(result), "000]");
}

}  // namespace

void check(fcclResult_t result, const std::string& attempt, const char* cause) {
  if (result == fcclSuccess) return;
  std::string text = attempt + ": " + with_code(with_settings_of_torch(cause), result);
  // Gloo's words, by which programs such as torchft detect that a peer has gone.
  if (result == fcclRemoteError) text += " (Connection closed by peer)";
  // Words by which torchft detects a time-out.
  if (result == fcclTimeout) text += " (timed out)";
  if (result == fcclNotImplemented) C10_THROW_ERROR(NotImplementedError, text);
  if (result == fcclInvalidArgument) C10_THROW_ERROR(ValueError, text);
  C10_THROW_ERROR(DistBackendError, text);
}

void check(fcclResult_t result, const std::string& attempt) {
  if (result != fcclSuccess) check(result, attempt, fcclGetLastError(nullptr));
}

void throw_reported(const std::string& attempt, const std::string& cause) {
  C10_THROW_ERROR(DistBackendError, attempt + ": rank 0 reports: " + cause);
}

std::exception_ptr failure_of(fcclResult_t result, const std::string& attempt, const char* cause) {
  try {
    check(result, attempt, cause);
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

void throw_not_implemented(const std::string& what) {
  C10_THROW_ERROR(NotImplementedError, what + " is not implemented yet; use another backend for it");
}

}  // namespace fccl::torch
