// Result<T>: a value, or the error that explains why it is missing.
#pragma once

#include <string>
#include <tl/expected.hpp>
#include <utility>

#include "fccl/fccl.h"

namespace fccl::core {

// A failure as the caller sees it: the code of the C interface and one text that says what was attempted, with whom, what was
// observed, which setting decides and what to try.
struct Error {
  fcclResult_t code = fcclInternalError;
  std::string message;
};

template <class T>
class [[nodiscard]] Result : public tl::expected<T, Error> {
 public:
  using tl::expected<T, Error>::expected;
};

inline tl::unexpected<Error> fail(fcclResult_t code, std::string message) {
  return tl::make_unexpected(Error{code, std::move(message)});
}

inline tl::unexpected<Error> fail(Error error) { return tl::make_unexpected(std::move(error)); }

}  // namespace fccl::core

// Returns the error of a Result<void> expression from the enclosing function.
#define FCCL_TRY(expression)                                                                                   \
  do {                                                                                                         \
    if (auto fccl_tried = (expression); !fccl_tried) return ::fccl::core::fail(std::move(fccl_tried).error()); \
  } while (false)

#define FCCL_JOINED(first, second) first##second
#define FCCL_JOIN(first, second) FCCL_JOINED(first, second)
#define FCCL_ASSIGN_TRIED(tried, declaration, ...)                 \
  auto tried = (__VA_ARGS__);                                      \
  if (!tried) return ::fccl::core::fail(std::move(tried).error()); \
  declaration = *std::move(tried)

// Declares or sets a variable by the value of a Result<T> expression, or returns its error from the enclosing function:
// FCCL_TRY_ASSIGN(auto file, open(path));
#define FCCL_TRY_ASSIGN(declaration, ...) FCCL_ASSIGN_TRIED(FCCL_JOIN(fccl_tried_, __LINE__), declaration, __VA_ARGS__)
