// Gate: lets the kernel refuse connections to an endpoint from machines without a peer of it.
#pragma once

#include <cstdint>
#include <set>

#include "ofi/descriptors.h"

namespace fccl::core::ofi {

// The listening socket of one rail over TCP, which libfabric owns, and the filter in front of it. The rail owns the gate; one
// thread at a time uses it. If there is no such socket, or the kernel takes no filter, any machine may connect, and strangers'
// data is dropped when it comes.
class Gate {
 public:
  // Guards the endpoint that has this name; at first only its own address is admitted.
  explicit Gate(const SocketName& own);

  // Admits connections from this peer's address. A peer that came too early connects again after a second.
  void admit(const SocketName& peer);
  // Returns the number of refused attempts so far. It stays 0 up to one attempt per peer: when two peers connect to each other
  // at the same time, libfabric breaks one connection off, and Linux counts the last packet of that one, too.
  uint64_t turned_away() const;
  // Removes the filter from an accepted connection, which has passed it already.
  static void open_connection(int accepted);

 private:
  void close_to_others() const;

  int socket_ = -1;
  uint64_t peers_ = 0;
  std::set<SocketName> admitted_;  // addresses without ports
};

}  // namespace fccl::core::ofi
