// Messages: the words of ranks and of the root of a bootstrap, as values and as bytes.
#pragma once

#include <chrono>
#include <map>
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
// Far above any real job; it bounds what a rank takes as a roster, and the root's search for missing ranks.
inline constexpr int kRankLimit = 65536;

// A rank asks to join, or says why it cannot. The handshake has carried the rank of its member; the root finds out the number
// of its host, and whether its process serves.
struct Hello {
  Member member;
  int nranks = 0;
  std::string agreement;  // "" with a failure
  std::optional<Error> failure = {};
  int origin = -1;        // the rank in the communicator that these ranks leave others out of; -1: they come from none
  std::string host = {};  // host_identity(): equal on ranks that share memory
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
// Ranks that are stopped have so long to say it, or to take a refusal.
inline constexpr std::chrono::seconds kStoppedTime{60};

// The root tells a rank that its call leaves that rank out: the rank is of a later call, and comes again.
struct Later {};

// The root tells all who have joined: at least one, in the order of their ranks from 0 on. Its bytes tell a rank by its place
// alone, and the name of a host by its first rank; its identity is known to the root alone.
struct Roster {
  std::vector<Member> members;
};

// The roster is in memory that came with this message, and has so many bytes.
struct SharedRoster {
  uint32_t bytes = 0;
};

// The root tells a collector to say all that it has said to another one.
struct PlaceInTree {
  std::string address;
  int rank = 0;           // the other collector's
  std::string whom = {};  // its name in messages
};

// The root asks all collectors whether they are there.
struct Query {};

// A collector tells that the connection of a rank has ended without a farewell.
struct Gone {
  std::string why;
};

// A collector answers a query.
struct Present {};

// A collector passes this on of one rank.
struct Passed {
  int rank = 0;
  std::variant<Hello, GivingUp, Failed, Gone, Present> word;
  bool agrees = false;  // the agreement of this hello, which it lacks, is that of the last hello over the same connection
};

// A collector comes to a parent: from now on it passes on what the ranks of its host say.
struct Collects {
  std::string address = {};  // "ip:port" at which it takes other collectors; "" = none
  bool is_astray = false;    // it could not reach the place that it was given
};

// A collector tells its parent, in their order, what it has heard since the last batch: at least one word, kMostPassedOn at
// most.
struct Batch {
  std::vector<Passed> words;
  std::optional<Collects> collects = {};  // in the first batch for a parent
};
inline constexpr size_t kMostPassedOn = 128;
// The limit of a batch as bytes.
inline constexpr size_t kBatchLimit = 1 << 20;

// A collector tells that it does not reach the root any more.
struct LostWay {
  std::string whom = {};  // the collector above it that is to blame; "" = the root
  std::string why = {};   // why the connection ended; "" = there is no answer
};

using Message = std::variant<Hello, GivingUp, Progress, Refusal, Roster, Failed, Farewell, Later, SharedRoster, PlaceInTree,
                             Query, Batch, LostWay>;

// Returns the roster of the ranks that have said these hellos, by rank, and numbers their hosts.
Roster roster_of(const std::map<int, Hello>& hellos);

// Returns how many bytes the roster of so many ranks has at most; any number may be asked for.
size_t roster_limit(int nranks);

std::string encode(const Message& message);
// Returns nothing for bytes that `encode` does not make.
std::optional<Message> decode(std::string_view bytes);

// Returns "rank 3", "ranks 1, 3-7"; long lists end in "and 12 more".
std::string list_ranks(const std::vector<int>& ascending);

}  // namespace fccl::core
