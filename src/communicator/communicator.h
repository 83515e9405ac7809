// Communicator: one rank's end of a group of ranks, and the way of every collective through it.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bootstrap/bootstrap.h"
#include "bootstrap/unique_id.h"
#include "communicator/control.h"
#include "communicator/issued_call.h"
#include "communicator/statistics.h"
#include "communicator/stream.h"
#include "hierarchical/columns.h"
#include "hierarchical/network.h"
#include "host_link/host_link.h"
#include "system/settings.h"
#include "wire/endpoint.h"

namespace fccl {

// How a communicator is to be made.
struct CreateOptions {
  Settings settings;
  std::string name;
};

// Made by all ranks together (create, split). One thread at a time issues calls; revoke, async_error and last_error are for any
// thread at any time. Finalize, abort and the destructor, too, are for any thread while another one is inside a call: they wait
// until that is out. After a failure every call returns the first failure; leaving and destroying still work. In a fork of the
// process that made it every call is refused, and only the destructor is of use.
class Communicator {
 public:
  static Result<std::unique_ptr<Communicator>> create(const UniqueId& id, int rank, int ranks, const CreateOptions& options,
                                                      const CancelCheck& cancel_check = {});
  // Collective: this rank's part of the group of its color, nullptr for a color below zero.
  Result<std::unique_ptr<Communicator>> split(int color, int key, const CreateOptions& options);
  // Waits for this rank's outstanding operations, and tells the peers that it has left. Nobody may be about to enter a call.
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  // Runs a call whose arguments have been checked: on a stream, or here and now.
  Result<void> run(const Call& call, Stream* stream);
  // Waits until every issued operation is done; no call may follow.
  Result<void> finalize();
  // Fails every rank's outstanding and later operations.
  Result<void> revoke();
  // Revokes, and returns when this rank's operations are out.
  void abort();
  // Whether this is the process that made it.
  Result<void> check_own() const;
  // Looks for dead peers, too.
  std::optional<Error> async_error();
  const char* last_error();

  Result<fcclRedOp_t> create_operator(fcclDataType_t dtype, Scalar scalar);
  Result<void> destroy_operator(fcclRedOp_t op);
  // The factor behind an operator handle made for `dtype`.
  Result<Scalar> factor_of(fcclRedOp_t op, fcclDataType_t dtype) const;

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  fcclHosts_t hosts() const { return {columns_->hosts(), columns_->most_ranks(), columns_->columns(), rails_}; }
  void set_timeout(std::chrono::milliseconds timeout) { timeout_ = timeout; }
  const CreateOptions& options() const { return options_; }
  const Statistics& statistics() const { return statistics_; }

 private:
  struct Factor {
    fcclDataType_t dtype;
    Scalar scalar;
  };
  Communicator(const CreateOptions& options, int rank, std::unique_ptr<Columns> columns, std::vector<Peer> peers,
               const std::shared_ptr<Segment>& segment);
  Result<void> issue(const Call& call, Stream* stream);
  Result<Stream*> queue_for(Stream* stream);
  std::chrono::milliseconds patience() const;
  static Result<std::unique_ptr<Communicator>> assemble(Joined& joined, const CreateOptions& options, const WaitLimit& limit);
  struct Part;
  Result<std::unique_ptr<Communicator>> make_part(int color, int key, const CreateOptions& options);
  Result<std::unique_ptr<Communicator>> meet(Part& part, const CreateOptions& options);
  Error fail_split(const Part& part, Error error);
  Result<void> exchange(const void* mine, void* all, size_t bytes);
  Result<void> join_hosts(Joined& joined, const WaitLimit& limit);
  Result<void> try_to_join_hosts(Joined& joined, const WaitLimit& limit);
  Result<void> share_wake(const Joined& joined, const WaitLimit& limit);
  Result<NetworkEnd> open_endpoint();
  Result<std::string> open_lanes();
  Result<std::vector<std::string>> exchange_here(const std::string& mine);
  Result<std::vector<std::string>> exchange_by_leaders(const std::string& mine, const WaitLimit& limit);
  Result<void> connect_lanes(const Network& network);
  Result<void> span_lanes(const Network& network);
  LinkEvents link_events();
  Result<void> check_usable() const;
  Result<size_t> find_factor(fcclRedOp_t op) const;
  bool is_idle() const;
  std::vector<int> ranks_here() const;
  void leave_network_alone();

  CreateOptions options_;
  int rank_;
  int ranks_;
  std::chrono::milliseconds timeout_;
  std::optional<Deadline> creation_ends_;  // while it is created
  bool crowded_ = true;                    // more ranks than processors; known once all ranks have joined
  int rails_ = 0;                          // of each host, between hosts
  unsigned forks_;                         // of the process when this was made
  std::atomic<bool> finalized_{false};
  std::atomic<bool> in_call_{false};  // written by the one thread that issues calls
  std::atomic<int> finalizing_{0};    // threads inside finalize
  uint64_t number_ = kFirstNumber;    // of the next call
  std::unique_ptr<Columns> columns_;
  std::shared_ptr<Segment> segment_;
  std::shared_ptr<Endpoint> endpoint_;  // null without a column between hosts
  std::shared_ptr<Control> control_;    // the link may outlive this
  std::array<LaneQueue, kLanes> lanes_;
  std::array<std::unique_ptr<Crossing>, kLanes> crossings_;  // until the lanes span the hosts
  Statistics statistics_;
  std::vector<std::optional<Factor>> factors_;
  std::unique_ptr<HostLink> link_;    // of the leader of a host
  std::unique_ptr<Stream> blocking_;  // takes blocking calls that find their lane at work
};

}  // namespace fccl
