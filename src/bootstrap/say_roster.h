// say_roster: how a root and a collector hand a roster to those below them.
#pragma once

#include <array>
#include <memory>
#include <string>

#include "bootstrap/messages.h"
#include "channels/channel.h"

namespace fccl::core {

// Says the bytes of a roster; if there is a descriptor of them, by that, which needs an end of this host.
inline void say_roster(Channel& channel, const std::shared_ptr<const std::string>& roster, int memory) {
  if (memory >= 0)
    channel.say(encode(SharedRoster{static_cast<uint32_t>(roster->size())}), std::array{memory});
  else
    channel.say(roster);
}

}  // namespace fccl::core
