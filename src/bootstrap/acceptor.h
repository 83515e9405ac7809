// Acceptor: lets in from a listener those who hold the key, and keeps strangers cheap.
#pragma once

#include <poll.h>

#include <list>
#include <span>
#include <vector>

#include "bootstrap/channel.h"
#include "system/clock.h"
#include "system/spare_descriptor.h"

namespace fccl {

// Everybody who connects is a stranger until the handshake is done. Strangers are served side by side, have 5 s each, and at
// most 256 are kept, fewer where the process may have few descriptors: one more turns out the one that has been here longest,
// so that neither many nor silent ones keep a rank out (a rank that is turned out in a flood tries again). Uses a listener that
// it does not own; one thread at a time.
class Acceptor {
 public:
  Acceptor(int listener, const Key& key, const Party& self);

  // Appends what to poll for.
  void watch(std::vector<pollfd>& set) const;
  // How long that poll may last.
  Deadline patience() const;
  // Moves everybody on whom the poll found ready; `polled` is what `watch` appended. Returns those who are in now.
  std::list<Channel> admit(std::span<const pollfd> polled);
  // The errno for which nobody has been let in for half a second though somebody waits, for want of descriptors; 0: none.
  int shortage() const;
  // From now on what the process holds back is for those who wait.
  void spend_spares() { spends_spares_ = true; }
  // Turns everybody out.
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
  std::list<Client> clients_;  // the longest here first
  Deadline rest_{};            // the listener is left alone until then
  bool spends_spares_ = false;
  SpareDescriptor spares_;
  int short_of_ = 0;  // the errno of a shortage that began then
  Clock::time_point short_since_;
};

}  // namespace fccl
