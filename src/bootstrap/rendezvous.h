// Rendezvous: the root's side of a bootstrap, where all ranks of one communicator meet.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "bootstrap/acceptor.h"
#include "bootstrap/messages.h"
#include "bootstrap/unique_id.h"
#include "os/clock.h"
#include "os/descriptor.h"

namespace fccl::core {

// Serves one unique id: gathers a Hello of every rank, checks them, and sends every rank either the roster or the same refusal.
// Ranks that have the roster stay connected until other channels tell of them; if one of them dies or fails before, the
// creation fails on all that are connected. Owned and used by the thread that serves it.
class Rendezvous {
 public:
  // `excluded`: ranks of the parent that this call leaves out. Their hellos belong to a later call, and disturb nothing.
  Rendezvous(Descriptor listener, const UniqueId& id, std::vector<int> excluded = {});
  ~Rendezvous();

  // Returns when every rank has left; or, after a failure, when every rank has been told. For stopped ranks it waits a minute
  // at most.
  void serve();

 private:
  // A connection whose peer holds the key.
  struct PendingClient {
    Channel channel;
    std::optional<Member> member;  // once its hello was accepted
    bool has_roster = false;       // the roster was said to it
    bool refused = false;          // the failure was sent to it
    bool is_leaving = false;       // it has said farewell
    bool is_of_later_call = false;

    int rank() const { return channel.peer().rank; }
    std::string name() const;
  };

  // The terms of the first rank; the other ranks must name the same.
  struct Terms {
    Member by;
    int nranks;
    std::string agreement;
  };

  bool finished() const;
  Deadline patience() const;
  void withdraw();
  void move_on();
  void close_door();
  void welcome(std::list<Channel> admitted);
  void refuse_all();
  void tell_roster();
  void attend(std::list<PendingClient>::iterator client);
  Result<void> hear(PendingClient& client, const std::string& bytes);
  void judge(PendingClient& client, Hello hello);
  void send_away(PendingClient& client);
  std::string objection(const Hello& hello) const;
  void fail_all(MessageCode code, std::string message);
  void report_progress();
  std::string progress() const;
  std::string so_far() const;
  std::string missing() const;
  bool complete() const { return roster_ != nullptr; }

  Descriptor listener_;
  Acceptor acceptor_;
  std::vector<int> excluded_;
  std::list<PendingClient> clients_;
  std::optional<Terms> terms_;
  int most_ranks_ = 0;             // largest number of ranks that any rank has named: that many should hear of a failure
  std::map<int, Member> members_;  // the ranks that have joined
  std::shared_ptr<const std::string> roster_;  // its bytes, once all have joined: all channels share them
  std::optional<Error> failure_;
  std::set<int> aware_;  // ranks that have heard of the failure and left
  std::optional<Deadline> end_;
  std::chrono::milliseconds until_report_;
  std::optional<Deadline> progress_due_;
};

}  // namespace fccl::core
