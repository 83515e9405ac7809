// RosterMemory: a roster that the ranks of one host read from the same memory.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "os/descriptor.h"

namespace fccl::core {

class Channel;

// The bytes of an encoded Roster in memory that nobody can change any more. Its owner may drop it once nothing is pending on
// the channels; one thread at a time. Without such memory each channel gets the bytes themselves.
class RosterMemory {
 public:
  explicit RosterMemory(std::shared_ptr<const std::string> roster);

  // Says the roster over a channel whose other end is of this host.
  void say_by(Channel& channel) const;

 private:
  std::shared_ptr<const std::string> bytes_;
  Descriptor memory_;
};

// Returns the bytes, `size` of them, from the descriptor that came with a SharedRoster.
Result<std::string> read_roster_memory(const Descriptor& memory, size_t size);

}  // namespace fccl::core
