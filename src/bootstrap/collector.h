// Collector: speaks to the root for the ranks of one host, and for the collectors below it in a tree.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "bootstrap/messages.h"
#include "bootstrap/roster_memory.h"
#include "bootstrap/unique_id.h"
#include "channels/acceptor.h"
#include "os/clock.h"
#include "os/descriptor.h"

namespace fccl::core {

// What a collector begins with.
struct CollectorSeat {
  UniqueId id;
  int rank = 0;  // the rank in whose process it runs
  int nranks = 0;
  Channel root;              // the connection to the root, which nothing was said over
  Descriptor door;           // the listener of its host
  Descriptor listener = {};  // the one for other collectors, if there is one
};

// Passes on what ranks say, in batches, and what the root says to all. A rank of the host joins by its door as by that of a
// root. Owned and used by the thread that serves it. If its process ends, all that it speaks for are lost to the root.
class Collector {
 public:
  explicit Collector(CollectorSeat seat);
  ~Collector();

  // Returns when all below it have left, or have been told of a failure and have left; for stopped ones it waits a minute at
  // most.
  void serve();

 private:
  // A rank of this host, or a collector with those for which it speaks.
  struct Client {
    Channel channel;
    bool collects = false;
    std::optional<Member> member = {};  // of a rank, once it has said hello
    std::set<int> ranks = {};           // of a collector
    std::string agreement = {};         // of a collector: that of its last hello
    bool asks = false;                  // one below it gives up, and waits for an answer
    bool is_leaving = false;            // it has said farewell

    int rank() const { return channel.peer().rank; }
  };

  bool finished() const;
  Deadline patience() const;
  void attend_parent();
  void hear_parent(const std::string& bytes);
  void lose_parent(const std::string& why);
  void move();
  std::optional<Channel> reach(const Address& address, int rank) const;
  void tell_who_is_silent(const LostWay& lost);
  void begin_with(Channel parent);
  void attend(std::list<Client>::iterator client);
  bool hear(Client& client, const std::string& bytes);
  void hear_batch(Client& client, Batch batch);
  void welcome(std::list<Channel> admitted, bool collect);
  void queue(Passed passed);
  std::chrono::milliseconds wait_for_more() const;
  void pass_on();
  void pass_on_roster(const std::string& bytes, const Roster& roster);
  void refuse(const std::string& message);
  void close_doors();
  bool is_short_of_descriptors() const;
  bool is_settled() const { return has_roster_ || refusal_; }

  CollectorSeat seat_;
  std::optional<Channel> parent_;     // to the root, or to another collector
  std::string whom_;                  // the name of that collector; "" = the root
  bool has_come_ = false;             // the parent knows that this is a collector
  std::optional<PlaceInTree> place_;  // where it is to go
  bool is_astray_ = false;
  std::optional<Acceptor> door_acceptor_;
  std::optional<Acceptor> tree_acceptor_;
  std::list<Client> clients_;
  std::set<int> left_;  // ranks for which collectors have spoken that said farewell
  std::vector<Passed> queued_;
  std::vector<Passed> said_;  // to this parent, as long as the root may name another one
  size_t passed_on_ = 0;      // words
  Clock::time_point begin_ = Clock::now();
  std::optional<Deadline> due_;           // when to pass the queue on
  std::optional<std::string> agreement_;  // that of the last hello that was passed on
  std::string progress_;                  // what the root has said last of who is missing
  std::optional<Deadline> answer_due_;    // when the parent, which was asked, counts as silent
  std::shared_ptr<const std::string> roster_;
  std::optional<RosterMemory> memory_;
  bool has_roster_ = false;             // it was said to all
  std::optional<std::string> refusal_;  // what ended the joining
  bool own_has_come_ = false;           // the rank of this collector
  std::optional<Deadline> end_;
};

}  // namespace fccl::core
