// WayToRoot: how a rank that joins reaches the root: by the door of its host, or by TCP.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "channels/channel.h"
#include "os/clock.h"
#include "os/descriptor.h"
#include "os/spare_descriptor.h"
#include "waiting/wait_limit.h"

namespace fccl::core {

struct JoinRequest;

// Decides if a rank that finds nobody at the door of its host collects the ranks there.
enum class AtEmptyDoor : uint8_t { collect, go_on };

// A joiner owns it, and keeps the request and the limit longer. One thread at a time.
class WayToRoot {
 public:
  WayToRoot(const JoinRequest& request, const WaitLimit& limit) : request_(request), limit_(limit) {}

  // Returns a channel to the root, or to the collector of this host.
  Result<Channel> reach(AtEmptyDoor then);
  // True if the channel led to the root itself.
  bool is_direct() const { return collector_.empty(); }
  // Names the other end of the channel.
  std::string whom() const { return is_direct() ? root() : collector_; }

  // A joiner without a cancel check need not wake up before the deadline.
  Deadline next_look() const { return limit_.cancel_check ? limit_.next_look() : limit_.deadline; }
  // Returns a listener on the way to the root, or none where FCCL_SOCKET_PORTS names the few ports that rank 0 may need.
  Descriptor listen_for_others() const;
  // Lets a rank that has to come again do so after a pause, unless it is cancelled or late.
  Result<void> rest(const std::string& observed);
  tl::unexpected<Error> timed_out(const std::string& observed) const;
  // Returns the lack of descriptors for which this rank cannot join, though it could reach the root.
  const std::optional<Error>& shortage() const { return shortage_; }
  std::string name() const;
  std::string root() const;
  // Tells that the root ended before all ranks had come.
  std::string root_left(const std::string& why) const;

 private:
  Result<std::optional<Channel>> pass_door();
  Result<Channel> collect(Descriptor door);
  Result<Channel> reach_by_tcp();
  Result<void> check_root(const Channel& channel) const;
  bool may_collect() const;
  std::string door() const;
  std::string other_interfaces() const;

  const JoinRequest& request_;
  const WaitLimit& limit_;
  Clock::time_point begin_ = Clock::now();
  SpareDescriptor spare_;          // descriptor that is given up so that the root can be told
  std::optional<Error> shortage_;  // the lack of descriptors that spare_ was spent for
  bool nobody_at_door_ = false;
  std::string collector_;  // name of the collector of this host, if the channel leads there
};

}  // namespace fccl::core
