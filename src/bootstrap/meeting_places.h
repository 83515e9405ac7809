// MeetingPlaces: ports at which the ranks of several hosts find each other again, whatever has become of their communicator.
#pragma once

#include <vector>

#include "base/result.h"
#include "channels/unique_id.h"
#include "os/descriptor.h"
#include "sockets/socket.h"

namespace fccl::core {

struct Bootstrap;
struct Settings;

// A part of a communicator that spans hosts, used by the thread that issues its calls. Every rank reserves a port without
// listening, and knows the ports of all: after a failure the first surviving rank listens at its own port, and the other
// survivors connect to it. It outlives any failure.
class MeetingPlaces {
 public:
  // Reserves a port where the settings allow it, on the way to the root of the communicator, whose id this is: no name is
  // looked up again.
  static Result<MeetingPlaces> hold(const Settings& settings, const UniqueId& id);

  // Returns this rank's address.
  const Address& own() const { return own_; }
  void learn(std::vector<Address> of_ranks) { of_ranks_ = std::move(of_ranks); }
  // Returns the id by which ranks meet at the port of `rank`.
  UniqueId id_of(int rank) const;
  // Opens the bootstrap at which this rank, as `rank`, meets the others.
  Result<Bootstrap> open(int rank) const;

 private:
  MeetingPlaces(Descriptor held, const Address& own, const Key& key) : held_(std::move(held)), own_(own), key_(key) {}

  Descriptor held_;
  Address own_;
  Key key_;  // shared by the ranks that meet
  std::vector<Address> of_ranks_;
};

}  // namespace fccl::core
