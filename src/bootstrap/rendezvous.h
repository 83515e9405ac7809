// Rendezvous: the root's side of a bootstrap, where all ranks of one communicator meet.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "bootstrap/bootstrap.h"
#include "bootstrap/collector_tree.h"
#include "bootstrap/messages.h"
#include "channels/acceptor.h"
#include "os/clock.h"
#include "os/descriptor.h"

namespace fccl::core {

// Serves one unique id: gathers a Hello of every rank, checks them, and sends every rank either the roster or the same refusal.
// Ranks of other hosts speak through the collectors of their hosts, which it places in a tree. Ranks that have the roster stay
// connected until other channels tell of them; if one of them dies or fails before, the creation fails on all that are
// connected. Owned and used by the thread that serves it.
class Rendezvous {
 public:
  explicit Rendezvous(Bootstrap bootstrap);
  ~Rendezvous();

  // Returns when every rank has left; or, after a failure, when every rank has been told. For stopped ranks it waits a minute
  // at most.
  void serve();

 private:
  // A rank that speaks over a connection: the peer itself, or one that the peer collects.
  struct Guest {
    int rank = 0;
    std::optional<Member> member = {};  // once its hello was accepted

    std::string name() const;
  };

  // A connection whose peer holds the key.
  struct PendingClient {
    Channel channel;
    Guest self;
    bool is_local = false;  // it came by the door of this host
    bool collects = false;
    std::map<int, Guest> guests = {};  // a collector's, by rank
    std::string agreement = {};        // a collector's last one
    bool has_roster = false;           // the roster was said to it
    bool refused = false;              // the failure was sent to it
    bool is_leaving = false;           // it has said farewell
    bool is_of_later_call = false;
    bool is_sent_on = false;  // it has its place below a collector

    bool has_joined() const { return self.member || !guests.empty(); }
  };

  // The terms of the first rank; the other ranks must name the same.
  struct Terms {
    Member by;
    int nranks;
    std::string agreement;
  };

  bool finished() const;
  Deadline patience() const;
  int shortage() const;
  void withdraw();
  void move_on();
  void close_door();
  void welcome(std::list<Channel> admitted, bool is_local);
  void refuse_all();
  void tell_roster();
  void attend(std::list<PendingClient>::iterator client);
  Result<void> hear(PendingClient& client, const std::string& bytes);
  void hear_of(PendingClient& client, Passed passed);
  bool place(PendingClient& client, Collects collects);
  void inquire(Error failure);
  void conclude();
  void judge(Guest& guest, Hello hello);
  void give_up(PendingClient& client, const Guest& guest);
  void hear_of_failure(const Guest& guest, const Error& error);
  void lose(const Guest& guest, const std::string& why, bool is_leaving);
  void send_away(PendingClient& client);
  std::string objection(const Hello& hello) const;
  void fail_all(MessageCode code, std::string message);
  void report_progress();
  std::string progress() const;
  std::string so_far() const;
  std::string missing() const;
  std::string name_of(int rank) const;
  bool complete() const { return roster_ != nullptr; }

  Bootstrap bootstrap_;
  Acceptor acceptor_;
  std::optional<Acceptor> local_acceptor_;  // that of the door
  std::list<PendingClient> clients_;
  CollectorTree tree_;
  std::optional<Terms> terms_;
  int most_ranks_ = 0;           // largest number of ranks that any rank has named: that many should hear of a failure
  std::map<int, Hello> hellos_;  // of the ranks that have joined
  std::shared_ptr<const std::string> roster_;  // its bytes, once all have joined: all channels share them
  Descriptor memory_;                          // the same for the ranks of this host
  std::optional<Error> failure_;
  std::set<int> aware_;  // ranks that have heard of the failure and left
  std::optional<Deadline> end_;
  std::chrono::milliseconds until_report_;
  std::optional<Deadline> progress_due_;
};

}  // namespace fccl::core
