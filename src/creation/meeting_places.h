// MeetingPlaces: where the ranks of several hosts find each other again, whatever has become of their communicator.
#pragma once

#include <vector>

#include "base/result.h"
#include "bootstrap/bootstrap.h"
#include "sockets/socket.h"
#include "system/descriptor.h"
#include "system/settings.h"

namespace fccl {

// One of a communicator's parts where it spans hosts, used by the thread that issues its calls. Every rank keeps a port at
// which it does not listen, and knows the ports of all: the first rank that goes on without some of them listens at its own,
// and the others come there, whoever is dead. It outlives any failure.
class MeetingPlaces {
 public:
  // Keeps a port where the settings allow it, on the way to the root of the communicator, whose id this is: no name is looked
  // up once more.
  static Result<MeetingPlaces> hold(const Settings& settings, const UniqueId& id);

  // This rank's.
  const Address& own() const { return own_; }
  void learn(std::vector<Address> of_ranks) { of_ranks_ = std::move(of_ranks); }
  // By which id ranks meet at that of `rank`.
  UniqueId id_of(int rank) const;
  // Where this rank is met, as `rank`.
  Result<Bootstrap> open(int rank) const;

 private:
  MeetingPlaces(Descriptor held, const Address& own, const Key& key) : held_(std::move(held)), own_(own), key_(key) {}

  Descriptor held_;
  Address own_;
  Key key_;  // of those who meet
  std::vector<Address> of_ranks_;
};

}  // namespace fccl
