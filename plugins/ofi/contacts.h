// Contacts: who the peers of a rail are, by libfabric's addresses, and which of them have been in contact with it.
#pragma once

#include <rdma/fi_domain.h>

#include <chrono>
#include <cstdint>
#include <vector>

#include "ofi/descriptors.h"

namespace fccl::core::ofi {

struct Endpoint;

// The rail owns it; one thread at a time uses it. Contact shows that there is a connection: libfabric does not say when it
// makes one, and its sockets would stay open in a program that a rank starts.
class Contacts {
 public:
  // Makes the process behind that name a peer.
  void add(fi_addr_t peer, const SocketName& name);
  bool is_peer(fi_addr_t sender) const { return sender < state_of_.size() && state_of_[sender] != State::stranger; }
  // Notes that a peer has sent something, or taken it; a stranger is ignored.
  void note(fi_addr_t sender) {
    if (sender >= state_of_.size() || state_of_[sender] != State::added) return;
    state_of_[sender] = State::met;
    has_new_ = true;
  }
  // True after the first contact with a peer, until its connection has been looked for.
  bool has_new() const { return has_new_; }
  // Marks the connections of this endpoint with peers as closed on exec, and removes the filter from accepted ones; looks only
  // now and then.
  void close_connections_on_exec(const Endpoint& endpoint);

 private:
  using Time = std::chrono::steady_clock::time_point;

  enum class State : uint8_t { stranger, added, met };

  // By libfabric's address, a small number. A provider may number a stranger, too.
  std::vector<State> state_of_;
  std::vector<SocketName> names_;
  bool has_new_ = false;
  Time looked_;
};

}  // namespace fccl::core::ofi
