// UniqueId: the contents of the 128 bytes of an fcclUniqueId.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "channels/key.h"
#include "fccl/fccl.h"
#include "sockets/listening_address.h"
#include "sockets/socket.h"

namespace fccl::core {

// Names one communicator that is to be made. Any process that has it may join, so it is as secret as the channel by which the
// user hands it on.
struct UniqueId {
  Address root;             // address at which the process that made the id listens
  uint64_t generation = 0;  // random: tells ids of one root apart in messages
  Key key{};
  std::string interface_name = {};  // interface that it listens on, and why; at most 15 bytes, "" if unknown
  ChosenBy chosen_by = ChosenBy::order;

  bool operator==(const UniqueId&) const = default;
};

// Returns "10.0.0.1:4242 (eth0, the interface of the default route)", for messages.
std::string root_text(const UniqueId& id);

// Returns the abstract unix name at which a root on `host`, or the collector of `host`, listens for the ranks there. Only who
// holds the key can tell it; two hosts, ids, roots or versions have different ones.
std::string door_name(const UniqueId& id, const std::string& host);

fcclUniqueId to_c(const UniqueId& id);
// Returns fcclInvalidArgument for bytes that fcclGetUniqueId of this format never made: zeroed, cut, damaged.
Result<UniqueId> from_c(const fcclUniqueId& bytes);

}  // namespace fccl::core
