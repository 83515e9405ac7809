// Messages: the words of ranks and of the root of a bootstrap, as values and as bytes.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "bootstrap/member.h"

namespace fccl::core {

inline constexpr size_t kAgreementLimit = 2048;
// The limit for every text except those of errors.
inline constexpr size_t kTextLimit = 255;

// A rank asks to join, or says why it cannot. member.rank is not sent: the handshake has carried it.
struct Hello {
  Member member;
  int nranks = 0;
  std::string agreement;  // "" with a failure
  std::optional<Error> failure = {};
};

// A rank leaves because its own deadline passed.
struct GivingUp {};

// The root tells which ranks have joined so far.
struct Progress {
  int joined = 0;
  std::string missing;  // "ranks 1, 3-7"
};

// The root tells that this communicator will not be made.
struct Refusal {
  Error error;
};

// A rank that has joined cannot go on.
struct Failed {
  Error error;
};

// A rank needs the root no more: from now on other channels tell what becomes of the rank.
struct Farewell {};

// A Member is one line of the roster, which the root sends in the order of ranks.
using Message = std::variant<Hello, GivingUp, Progress, Refusal, Member, Failed, Farewell>;

std::string encode(const Message& message);
// Returns nothing for bytes that `encode` does not make.
std::optional<Message> decode(std::string_view bytes);

// Returns "rank 3", "ranks 1, 3-7"; long lists end in "and 12 more".
std::string list_ranks(const std::vector<int>& ascending);

}  // namespace fccl::core
