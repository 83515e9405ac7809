// CollectorTree: what a root knows of the collectors: the place of each, and whether it is there.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "bootstrap/messages.h"
#include "os/clock.h"

namespace fccl::core {

// A value of the root. One thread at a time.
class CollectorTree {
 public:
  // Takes a collector in. Returns the place where it is to go, or nothing if it stays below the root, as one that is astray
  // does. The first collectors stay, and each later one goes to the first that has room.
  std::optional<PlaceInTree> place(int rank, Collects collects);

  // Begins to ask all collectors whether they are there, because of a failure. Returns false if there are none.
  bool inquire(Error failure);
  // Returns when to call conclude, if an inquiry has begun.
  std::optional<Deadline> patience() const;
  // A collector has answered, or has left and need not.
  void hear_from(int rank);
  // Returns the failure once all have answered or the time is over. `silent` then has the rank of one that has not answered,
  // before those that are below it.
  std::optional<Error> conclude(std::optional<int>& silent);

 private:
  struct Collecting {
    int rank = 0;
    std::string address;
    int children = 0;
    bool is_present = false;  // it has answered
  };
  struct Inquiry {
    Deadline end;
    Error failure;
  };

  std::vector<Collecting> collectors_;  // as they came
  int children_ = 0;                    // the root's own
  std::optional<Inquiry> inquiry_;
};

}  // namespace fccl::core
