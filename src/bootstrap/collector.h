// Collector: speaks to the root for the ranks of one host, and for the collectors below it in a tree.
#pragma once

#include <list>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "bootstrap/messages.h"
#include "bootstrap/upward.h"
#include "channels/acceptor.h"
#include "channels/unique_id.h"
#include "os/clock.h"
#include "os/descriptor.h"

namespace fccl::core {

// A collector begins with these.
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
    std::optional<Member> member = {};  // a rank's, once it has said hello
    std::set<int> ranks = {};           // a collector's
    std::string agreement = {};         // a collector's last one
    bool asks = false;                  // one below it gives up, and waits for an answer
    bool is_leaving = false;            // it has said farewell

    int rank() const { return channel.peer().rank; }
  };

  bool finished() const;
  Deadline patience() const;
  void attend_parent();
  void lose_parent(const std::string& why);
  void hear_parent(const std::string& bytes);
  void attend(std::list<Client>::iterator client);
  bool hear(Client& client, const std::string& bytes);
  bool hear_rank(Client& client, Message message);
  void hear_batch(Client& client, Batch batch);
  void welcome(std::list<Channel> admitted, bool collect);
  void pass_on_roster(const std::string& bytes, const Roster& roster);
  void refuse(const std::string& message);
  void tell_who_is_silent(const LostWay& lost);
  void close_doors();
  bool is_short_of_descriptors() const;
  bool is_settled() const { return roster_ || refusal_; }

  int rank_;
  Upward parent_;
  Descriptor door_, listener_;
  std::optional<Acceptor> door_acceptor_;
  std::optional<Acceptor> tree_acceptor_;
  std::list<Client> clients_;
  std::set<int> left_;                         // ranks for which collectors have spoken that said farewell
  std::optional<PlaceInTree> place_;           // the root has named it as the place to go
  std::string progress_;                       // the root's last word on who is missing
  std::shared_ptr<const std::string> roster_;  // its bytes, once it was said to all
  Descriptor memory_;                          // the same for the ranks of this host
  std::optional<std::string> refusal_;         // the message that ended the joining
  bool own_has_come_ = false;                  // the rank of this collector
  std::optional<Deadline> end_;
};

}  // namespace fccl::core
