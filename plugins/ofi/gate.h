// Gate: lets the kernel turn away whoever connects to an endpoint from a machine that has no peer of it.
#pragma once

#include <cstdint>
#include <set>

#include "ofi/descriptors.h"

namespace fccl::ofi {

// The listening socket of one rail over TCP, which libfabric owns, and the filter before it. Owned by the rail; one thread at a
// time. Where there is no such socket, or the kernel takes no filter, everybody may connect, and what strangers send is dropped
// when it comes.
class Gate {
 public:
  // Of the endpoint that has this name; so far it admits its own address alone.
  explicit Gate(const SocketName& own);

  // Whoever connects from this peer's address. The connection is tried again after a second if it came too early.
  void admit(const SocketName& peer);
  // Attempts so far. None while there were no more than one for each peer: where two peers connect to each other at once,
  // libfabric breaks one connection off, and Linux counts the last packets of that one, too.
  uint64_t turned_away() const;
  // Its accepted connections have passed, and need no filter.
  static void open_connection(int accepted);

 private:
  void close_to_others() const;

  int socket_ = -1;
  uint64_t peers_ = 0;
  std::set<SocketName> admitted_;  // addresses without ports
};

}  // namespace fccl::ofi
