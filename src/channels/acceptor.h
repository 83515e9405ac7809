// Acceptor: admits connections that hold the key from a listener, and keeps strangers cheap.
#pragma once

#include <poll.h>

#include <list>
#include <span>
#include <vector>

#include "channels/channel.h"
#include "os/clock.h"
#include "os/spare_descriptor.h"

namespace fccl::core {

// Every connection is a stranger until its handshake is done. Strangers are served side by side, have 5 s each, and at most 256
// are kept, fewer where the process may have few descriptors: one more drops the oldest one, so that neither many nor silent
// strangers keep a rank out (a rank that is dropped in a flood tries again). Uses a listener that it does not own; one thread
// at a time.
class Acceptor {
 public:
  Acceptor(int listener, const Key& key, const Party& self);

  // Appends the descriptors to poll.
  void watch(std::vector<pollfd>& set) const;
  // Returns how long that poll may last.
  Deadline patience() const;
  // Serves every connection that the poll found ready; `polled` is what `watch` appended. Returns those whose handshake is
  // complete.
  std::list<Channel> admit(std::span<const pollfd> polled);
  // Returns the errno of a lack of descriptors that has kept every waiting connection out for half a second; 0: no such lack.
  int shortage() const;
  // Lets waiting connections have the descriptors that the process holds in reserve.
  void spend_spares() { spends_spares_ = true; }
  // Drops all connections.
  void clear() { clients_.clear(); }

 private:
  struct Client {
    Channel channel;
    Deadline deadline;
  };

  void accept_waiting();

  int listener_;
  Key key_;
  Party self_;
  size_t most_clients_;
  std::list<Client> clients_;  // the oldest first
  Deadline rest_{};            // the listener is left alone until then
  bool spends_spares_ = false;
  SpareDescriptor spares_;
  int short_of_ = 0;  // errno of the shortage that began at short_since_
  Clock::time_point short_since_;
};

}  // namespace fccl::core
