// Rendezvous: the root's side of a bootstrap, where all ranks of one communicator meet.
#pragma once

#include <list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "bootstrap/acceptor.h"
#include "bootstrap/messages.h"
#include "bootstrap/unique_id.h"
#include "system/clock.h"
#include "system/descriptor.h"

namespace fccl {

// Serves one unique id: gathers a Hello of every rank, judges them, and sends all ranks the roster, or all ranks the one reason
// why there will be none. Ranks that have the roster stay until others tell of them; one that dies or fails before is the end
// of all that are here. Owned and used by the thread that serves it.
class Rendezvous {
 public:
  Rendezvous(Descriptor listener, const UniqueId& id);
  ~Rendezvous();

  // Returns when every rank has left; or, after a failure, when every rank has been told. Of ranks that are stopped it waits a
  // minute for the last.
  void serve();

 private:
  // A connection that holds the key.
  struct PendingClient {
    Channel channel;
    std::optional<Member> member;  // once its hello was accepted
    size_t lines_sent = 0;         // of the roster
    bool refused = false;          // has been sent the failure
    bool is_leaving = false;       // has said farewell

    int rank() const { return channel.peer().rank; }
    std::string name() const;
  };

  // What the first rank said; the others must say the same.
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
  void pay(PendingClient& client);
  void attend(std::list<PendingClient>::iterator client);
  Result<void> hear(PendingClient& client, const std::string& bytes);
  void judge(PendingClient& client, Hello hello);
  std::string objection(const Hello& hello) const;
  void fail_all(fcclResult_t code, std::string message);
  void report_progress();
  std::string so_far() const;
  std::string missing() const;
  bool complete() const { return !roster_.empty(); }

  Descriptor listener_;
  Acceptor acceptor_;
  std::list<PendingClient> clients_;
  std::optional<Terms> terms_;
  int most_ranks_ = 0;               // that anybody has named: so many are to hear of a failure
  std::map<int, Member> members_;    // by rank, those who have joined
  std::vector<std::string> roster_;  // its encoded lines, once all have joined
  std::optional<Error> failure_;
  std::set<int> aware_;  // ranks that have heard of the failure and left
  std::optional<Deadline> end_;
  std::optional<Deadline> progress_due_;
};

}  // namespace fccl
