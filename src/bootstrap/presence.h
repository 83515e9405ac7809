// Presence: a rank's connection to the root after the roster, by which all ranks hear of one that dies or cannot go on.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "channels/channel.h"
#include "os/clock.h"

namespace fccl::core {

// A rank that creates a communicator owns it, until another channel tells the other hosts what becomes of the rank. The root,
// or the collector of the rank's host, sees the end of the rank's process, and the root tells all. One thread at a time.
class Presence {
 public:
  Presence() = default;
  // `way`: the name in messages of the channel's other end, if it ends; `root`: that of the root, which it may be.
  Presence(Channel channel, std::string way, std::string root)
      : channel_(std::make_unique<Channel>(std::move(channel))), way_(std::move(way)), root_(std::move(root)) {}
  Presence(Presence&&) noexcept = default;
  Presence& operator=(Presence&&) noexcept = default;
  ~Presence() { leave(); }

  // Returns an error if the root has said that there will be no communicator, or has ended. It does not wait.
  Result<void> look();
  // Tells all ranks why this one cannot go on. Returns why the communicator fails: the reason of the first rank that gave up.
  // It waits half a second for a root that does not answer.
  Error give_up(Error why);
  // From now on the root may end; only its words count: the ranks that could miss a death now watch each other.
  void let_root_end() { root_may_end_ = true; }
  // Leaves, since other channels tell of this rank from now on; destruction does the same.
  void leave();

 private:
  void listen(Deadline deadline);
  void lose(const std::string& whom, const std::string& why);

  std::unique_ptr<Channel> channel_;  // null once it has left
  std::string way_;
  std::string root_;
  bool root_may_end_ = false;
  std::optional<Error> told_;
};

}  // namespace fccl::core
