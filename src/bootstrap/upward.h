// Upward: a collector's connection to its parent, and the words of ranks that wait to go there.
#pragma once

#include <poll.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "bootstrap/messages.h"
#include "channels/channel.h"
#include "channels/unique_id.h"
#include "os/clock.h"

namespace fccl::core {

// Passes words on in batches, in their order. A Collector owns it. One thread at a time. Once the connection is lost, it keeps
// nothing and drops what it is told.
class Upward {
 public:
  // `self` says who this collector is and where it takes others; `root` is a connection over which nothing was said.
  Upward(const UniqueId& id, int rank, int nranks, Collects self, Channel root);

  bool is_there() const { return channel_.has_value(); }
  // Names the parent; "" is the root.
  const std::string& whom() const { return whom_; }
  // Returns what to poll for; an empty entry once the connection is lost.
  pollfd watch() const;
  // Returns when to call pass_on or finds_silence again.
  Deadline patience() const;

  void queue(Passed passed);
  bool has_queued() const { return is_there() && !queued_.empty(); }
  // Says what is due. A next batch waits until the kernel has taken the one before it.
  void pass_on();
  Result<void> pump() { return channel_->pump(); }
  std::optional<std::string> hear();
  void lose();
  // Goes to another parent, where it says all words again; to the root if that parent cannot be reached. Returns false if the
  // root cannot be reached either.
  bool move(const PlaceInTree& place);
  // Tells that no other parent will be named.
  void stay();
  // Returns true once when the parent was asked and has said nothing for long.
  bool finds_silence();
  void say_farewell(bool has_roster);

 private:
  void begin_with(Channel channel);
  std::optional<Channel> reach(const Address& address, int rank) const;
  std::chrono::milliseconds wait_for_more() const;

  UniqueId id_;
  int rank_;
  int nranks_;
  Collects self_;
  std::optional<Channel> channel_;
  std::string whom_;
  bool has_come_ = false;                 // the parent knows that this is a collector
  bool stays_ = false;                    // no other parent will be named
  std::optional<std::string> agreement_;  // the last one that was passed on
  std::vector<Passed> queued_;
  std::vector<Passed> said_;  // to this parent, as long as the root may name another one
  size_t passed_on_ = 0;      // words
  Clock::time_point begin_ = Clock::now();
  std::optional<Deadline> due_;         // the queue is passed on then
  std::optional<Deadline> answer_due_;  // the parent, which was asked, counts as silent then
};

}  // namespace fccl::core
