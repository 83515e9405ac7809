// Bootstrap: how the ranks of a communicator find each other, from a unique id to a roster and one shared descriptor.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "bootstrap/member.h"
#include "bootstrap/presence.h"
#include "bootstrap/unique_id.h"
#include "system/descriptor.h"
#include "system/wait_limit.h"

namespace fccl {

struct JoinRequest {
  UniqueId id;
  int rank = 0;
  int nranks = 0;
  std::string agreement;            // lines "name=value" that must be equal on all ranks; at most 2 KiB
  std::string host_override;        // FCCL_HOST_ID; "" = none
  std::string interface_name = {};  // of the TCP listener; "" = choose
  bool awaits_root = false;         // who serves the id may yet have to begin; else that nobody does is an error
};

// What a rank holds once all have joined, until its communicator is made. Owned by who makes that; one thread at a time.
struct Joined {
  std::vector<Member> members;  // by rank
  Descriptor listener;          // this rank's abstract unix listener
  UniqueId id;
  int rank = 0;
  Descriptor tcp_listener = {};  // of rank 0 alone
  Presence presence = {};
};

// A bootstrap that listens, and keeps who comes waiting until it is served. Dropped, it leaves nothing.
struct Bootstrap {
  UniqueId id;
  Descriptor listener;
};

Result<Bootstrap> prepare_bootstrap(const std::string& interface_name);
// Serves it from a thread. To shut the descriptor that is returned ends the service before all ranks have come.
Result<Descriptor> serve_bootstrap(Bootstrap prepared);

// Both: opens the listener of a new communicator on the named interface ("" = choose) and serves it from a thread of this
// process until every rank has left. An id that no rank uses keeps its thread and port for the life of the process; one
// whose ranks could not agree keeps them for a minute, to tell the late ones why. A forked child is not disturbed and does not
// serve.
Result<UniqueId> open_bootstrap(const std::string& interface_name);

// Joins; returns when all ranks have. A rank that is there twice or out of range, numbers of ranks, agreements or versions that
// differ, and a rank that cannot join or leaves before the last has come are errors on every rank, and the id is spent. Any
// thread; the ranks of one process may join at the same time.
Result<Joined> join(const JoinRequest& request, WaitLimit limit);
// Tells the others why this rank cannot join, as far as that goes in a short time. Of the request it reads the first three.
void decline(const JoinRequest& request, const Error& why);

// Gives `fd` to each of `ranks`, which call `receive_descriptor` with this rank as leader. All are ranks of this host.
// Strangers who connect meanwhile are served a closed door. The same ranks must meet between two hand-outs of one Joined.
Result<void> send_descriptor(const Joined& joined, int fd, const std::vector<int>& ranks, const WaitLimit& limit);
Result<Descriptor> receive_descriptor(const Joined& joined, int leader, const WaitLimit& limit);

}  // namespace fccl
