// Run: a trial as events, what each of them waits for, and which memory of its member it reads or writes.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "plan/check.h"
#include "plan/waits.h"

namespace fccl::core::plan {

// The steps of all members, numbered one behind the other, and how they belong together. A value that refers to the members'
// steps; the caller keeps those alive.
class Run {
 public:
  Run(const Trial& trial, const std::vector<Steps>& members);

  // Finds the other end of every message, what frees its landing and which send fills its stage. Returns the first fault or "";
  // without a fault the other functions may be called.
  std::string join();

  int members() const { return n_; }
  int steps() const { return first_[n_]; }
  int number(int m, size_t i) const { return first_[m] + static_cast<int>(i); }
  const Steps& steps_of(int m) const { return members_[m]; }
  const Step& step(int number) const { return *steps_[number]; }
  int member_of(int number) const { return owner_[number]; }
  int sender_of(int receive) const { return other_end_[receive]; }
  // The send that filled the stage of this one, which may be itself.
  int stager_of(int send) const { return stager_[send]; }

  // Events: the host has put a member's input of a slice; has taken its output; a step is done, of a send: copied and posted.
  int events() const { return trial_.slices * per_slice(); }
  int put(int slice, int m) const { return slice * per_slice() + m; }
  int taken(int slice, int m) const { return put(slice, n_ + m); }
  int done(int slice, int number) const { return put(slice, 2 * n_ + number); }
  // Whose events follow one another: of a member, four chains.
  enum Chain { kSends, kReceives, kPuts, kTakes, kChains };
  int owner_of(int event) const;
  Chain chain_of(int event) const;
  // The step of an event of the first slice; -1 for others and the host's.
  int step_of_first_slice(int event) const { return event < per_slice() && event >= 2 * n_ ? event - 2 * n_ : -1; }

  Waits waits() const;

 private:
  // The last events of a member's cursors, -1 before the first.
  struct Ends {
    int sent = -1;
    int received = -1;
  };

  int per_slice() const { return 2 * n_ + steps(); }
  const std::vector<int>& sends(int from, int to) const { return sends_[from * n_ + to]; }
  std::string fault_of_step(int m, size_t i) const;
  std::string match();
  std::string follow_landing(int m);
  std::string fill_stages(int m);
  void order_host(Waits& waits, const std::vector<Ends>& ends, int slice, int m) const;
  Ends order_steps(Waits& waits, const std::vector<Ends>& ends, int slice, int m) const;
  void order_credit(Waits& waits, int slice, int send) const;
  void order_room(Waits& waits, const std::vector<Ends>& ends, int slice, int number) const;

  const Trial& trial_;
  const std::vector<Steps>& members_;
  int n_;
  std::vector<int> first_;  // the number of each member's first step
  std::vector<const Step*> steps_;
  std::vector<int> owner_;
  std::vector<std::vector<int>> sends_, receives_;  // by the pair of members
  std::vector<int> other_end_, place_;              // of a message: its other end; its place among those of the pair
  std::vector<int> freed_by_;                       // for each receive: the step that is done with its landing
  std::vector<int> stager_;
  std::vector<bool> gets_;  // by member: whether the host takes an output
};

// The first chunk of a message, as Exchange::chunk_of has it: both ends know it, and parts between two are of the only chunk.
inline int chunk_of(const Step& step) {
  const Slot& slot = step.here.space == Space::parts ? step.there : step.here;
  return slot.space == Space::parts ? 0 : slot.index;
}

}  // namespace fccl::core::plan
