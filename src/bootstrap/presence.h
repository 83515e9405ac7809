// Presence: a rank's tie to the root after the roster, by which all ranks hear of one that dies or cannot go on.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "bootstrap/channel.h"
#include "system/clock.h"

namespace fccl {

// Owned by a rank that creates a communicator, until something else tells the other hosts what becomes of it. The end of its
// process is seen by the root, which tells all. One thread at a time.
class Presence {
 public:
  Presence() = default;
  // `root`: what it is called if it ends.
  Presence(Channel channel, std::string root)
      : channel_(std::make_unique<Channel>(std::move(channel))), root_(std::move(root)) {}
  Presence(Presence&&) noexcept = default;
  Presence& operator=(Presence&&) noexcept = default;
  ~Presence() { leave(); }

  // Why there will be no communicator, if the root has said so or has ended. Does not wait.
  Result<void> look();
  // Tells all ranks why this one cannot go on. Returns why none of them can: what the first one gave as its reason. A root that
  // does not answer is waited for half a second.
  Error give_up(Error why);
  // From now on only what the root says counts, and not its end: those who could miss it watch each other.
  void let_root_end() { root_may_end_ = true; }
  // Others tell from now on; as does the end of its life.
  void leave();

 private:
  void listen(Deadline deadline);

  std::unique_ptr<Channel> channel_;  // null: it has left
  std::string root_;
  bool root_may_end_ = false;
  std::optional<Error> told_;
};

}  // namespace fccl
