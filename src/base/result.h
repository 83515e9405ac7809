// Result<T>: a value, or the error that explains why it is missing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>

#include "base/message_kind.h"
#include "fccl/fccl.h"

namespace fccl::core {

// What an error is, as a number. A value, which each error has.
class MessageCode {
 public:
  // A message without a kind of its own, which says itself what to do.
  constexpr MessageCode(fcclResult_t result) : number_(static_cast<uint16_t>(result * kPerResult)) {}
  constexpr MessageCode(MessageKind kind) : number_(static_cast<uint16_t>(kind)) {}
  // Reads a number that a peer has written, if it is one of an error.
  static constexpr std::optional<MessageCode> of_peer(uint64_t number) {
    const uint64_t result = number / kPerResult;
    if (result == fcclSuccess || result >= fcclNumResults) return std::nullopt;
    MessageCode code = fcclInternalError;
    code.number_ = static_cast<uint16_t>(number);
    return code;
  }

  constexpr operator fcclResult_t() const { return static_cast<fcclResult_t>(number_ / kPerResult); }
  constexpr uint16_t number() const { return number_; }

 private:
  static constexpr int kPerResult = 1000;

  uint16_t number_;
};

// A failure: its code, which is also the result in the C interface, and one text that says what was attempted, with whom, what
// was observed, which setting decides and what to try. Callers see both (with_code).
struct Error {
  MessageCode code = fcclInternalError;
  std::string message;
};

// Puts the code behind a message, as users see it: "rank 1 died [FCCL-6001]".
std::string with_code(std::string_view message, MessageCode code);

template <class T>
class [[nodiscard]] Result : public tl::expected<T, Error> {
 public:
  using tl::expected<T, Error>::expected;
};

inline tl::unexpected<Error> fail(MessageCode code, std::string message) {
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
