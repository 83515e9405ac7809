// Bootstrap: brings the ranks of a communicator together, from a unique id to a roster.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "bootstrap/member.h"
#include "bootstrap/presence.h"
#include "channels/unique_id.h"
#include "os/descriptor.h"
#include "settings/settings.h"
#include "waiting/wait_limit.h"

namespace fccl::core {

struct JoinRequest {
  UniqueId id;
  int rank = 0;
  int nranks = 0;
  std::string agreement;      // lines "name=value" that must be equal on all ranks; at most 2 KiB
  std::string host_override;  // FCCL_HOST_ID; "" = none
  Settings settings = {};     // which interface and ports a TCP listener may take
  bool awaits_root = false;   // a process may yet begin to serve the id; otherwise a refused connection is an error
  int origin = -1;            // this rank in the communicator that the new one leaves ranks out of; -1 = none
  // Up to so many ranks, each has a connection to the root of its own, and its death is seen at once, also where others are
  // stopped. Otherwise hosts have collectors.
  int most_direct = 64;
};

// Holds what a rank has once all have joined, until its communicator is made. The creation owns it; one thread at a time.
struct Joined {
  std::vector<Member> members;  // by rank
  Descriptor listener;          // this rank's abstract unix listener
  UniqueId id;
  int rank = 0;
  Descriptor tcp_listener = {};  // rank 0 has one, and of many ranks each may
  Presence presence = {};
};

// A bootstrap that listens and keeps connections waiting until it is served. Dropping it leaves nothing behind.
struct Bootstrap {
  UniqueId id;
  Descriptor listener;
  Descriptor door = {};            // the abstract unix listener for the ranks of this host, if there is one
  std::vector<int> excluded = {};  // ranks of the parent that are left out: they come for a later call, and wait for it
};

Result<Bootstrap> prepare_bootstrap(const Settings& settings);
// Serves it from a thread. Shutting the descriptor that it returns ends the service before all ranks have come.
Result<Descriptor> serve_bootstrap(Bootstrap prepared);

// Does both: opens the listener of a new communicator where the settings allow it and serves it from a thread of this process
// until every rank has left. An id that no rank uses keeps its thread and port for the life of the process; a bootstrap whose
// ranks could not agree keeps them for a minute, to tell late ranks why. A forked child is not disturbed and does not serve.
Result<UniqueId> open_bootstrap(const Settings& settings);

// Joins; returns when all ranks have joined. The id is spent, and every rank gets an error, if a rank is there twice or out of
// range, if numbers of ranks, agreements or versions differ, or if a rank cannot join or leaves before the last has come. Any
// thread may call it; the ranks of one process may join at the same time.
Result<Joined> join(const JoinRequest& request, WaitLimit limit);
// Tells the other ranks why this rank cannot join, if that takes only a short time. It reads only the first three fields of the
// request.
void decline(const JoinRequest& request, const Error& why);

}  // namespace fccl::core
