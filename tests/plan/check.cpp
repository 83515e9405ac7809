// The proof: messages are matched, then values are computed symbolically, then conflicting accesses are looked up in the order.
#include "plan/check.h"

#include <fmt/format.h>

#include <bit>
#include <map>
#include <tuple>

#include "plan/happens_before.h"

namespace fccl::plan {
namespace {

using Value = int;
constexpr Value kNothing = 0;

// Symbolic values: what a member contributed to a chunk, and sums of two values. Equal values have equal numbers.
class Values {
 public:
  explicit Values(int members) : members_(members), next_(members * members + 1) {}

  Value of(int member, int chunk) const { return 1 + member * members_ + chunk; }

  // The tree over several values, split at the largest power of two below their number.
  Value sum(const Value* values, int count) {
    if (count == 1) return values[0];
    const int left = static_cast<int>(std::bit_floor(static_cast<unsigned>(count - 1)));
    const std::pair both{sum(values, left), sum(values + left, count - left)};
    if (both.first == kNothing || both.second == kNothing) return kNothing;
    const auto [place, is_new] = sums_.try_emplace(both, next_);
    if (is_new) ++next_;
    return place->second;
  }

  Value sum_over_members(int chunk) {
    std::vector<Value> values(members_);
    for (int member = 0; member < members_; ++member) values[member] = of(member, chunk);
    return sum(values.data(), members_);
  }

 private:
  int members_;
  Value next_;
  std::map<std::pair<Value, Value>, Value> sums_;
};

// One access to a slot: from an event until the first of two that say it is over.
struct Access {
  int begin;
  int end;
  int other_end;
  bool writes;
};

const char* name_of(Space space) { return space == Space::data ? "data" : "parts"; }

class Proof {
 public:
  Proof(const Trial& trial, const std::vector<Steps>& members)
      : trial_(trial), n_(trial.group.members), members_(members), first_(n_ + 1, 0), values_(n_) {
    for (int m = 0; m < n_; ++m) first_[m + 1] = first_[m] + static_cast<int>(members[m].size());
    peer_step_.assign(first_[n_], -1);
  }

  std::string run() {
    match();
    if (fault_.empty()) compute();
    if (fault_.empty()) find_races();
    return fault_;
  }

 private:
  // Events of a slice: a member begins it, is done with it; a step is posted, finished, finished with all before it.
  int events_of_slice() const { return 2 * n_ + 3 * first_[n_]; }
  int begun(int slice, int m) const { return slice * events_of_slice() + m; }
  int drained(int slice, int m) const { return begun(slice, n_ + m); }
  int posted(int slice, int step) const { return begun(slice, 2 * n_ + 3 * step); }
  int finished(int slice, int step) const { return posted(slice, step) + 1; }
  int finished_up_to(int slice, int step) const { return posted(slice, step) + 2; }

  template <class... Arguments>
  void blame(int m, size_t step, fmt::format_string<Arguments...> text, Arguments&&... arguments) {
    if (fault_.empty())
      fault_ = fmt::format("member {}, step {}: {}", m, step, fmt::format(text, std::forward<Arguments>(arguments)...));
  }

  template <class Do>
  void for_each_step(Do action) {
    for (int m = 0; m < n_; ++m)
      for (size_t i = 0; i < members_[m].size(); ++i) action(m, i, members_[m][i]);
  }

  void match();
  void check_rounds(int m);
  void compute();
  void order_slice(HappensBefore& order, int slice);
  void give_contributions();
  bool contributes(int m, int chunk) const;
  Value result(int m, int chunk);
  void execute(int m, size_t i, const Step& step, bool arrives);
  void find_races();
  void add_accesses(int slice, std::vector<std::vector<Access>>& accesses);
  bool ordered(const Access& a, const Access& b);
  int slot(int m, Slot slot, int i = 0) const {
    return (m * 2 + static_cast<int>(slot.space)) * n_ + trial_.group.around(slot.index + i);
  }

  const Trial& trial_;
  int n_;
  const std::vector<Steps>& members_;
  std::vector<int> first_;      // the number of each member's first step
  std::vector<int> peer_step_;  // of a send or receive, the number of the step at the other end
  std::string fault_;
  Values values_;
  std::vector<Value> slots_;
  std::vector<std::vector<Value>> messages_;
  HappensBefore order_{0};
};

// Every send meets its receive.
void Proof::match() {
  using Message = std::tuple<int, int, int>;  // from, to, number
  std::map<Message, std::pair<int, const Step*>> sends;
  std::map<std::tuple<int, int, int>, int> in_round;
  for_each_step([&](int m, size_t i, const Step& step) {
    if (step.kind == Kind::add) return;
    if (step.peer < 0 || step.peer >= n_ || step.peer == m) return blame(m, i, "the peer is {}", step.peer);
    if (step.kind != Kind::send) return;
    if (!sends.try_emplace({m, step.peer, step.message}, first_[m] + static_cast<int>(i), &step).second)
      blame(m, i, "a second message {} to {}", step.message, step.peer);
    if (++in_round[{m, step.peer, step.round}] > 1) blame(m, i, "a second message to {} in round {}", step.peer, step.round);
  });
  for_each_step([&](int m, size_t i, const Step& step) {
    if (step.kind != Kind::receive) return;
    const auto found = sends.find({step.peer, m, step.message});
    if (found == sends.end()) return blame(m, i, "{} sends no message {}", step.peer, step.message);
    const auto [number, send] = found->second;
    if (peer_step_[number] >= 0) return blame(m, i, "a second receive of message {} from {}", step.message, step.peer);
    if (send->there != step.here || send->here != step.there || send->count != step.count || send->round != step.round)
      return blame(m, i, "sender and receiver disagree on message {} from {}", step.message, step.peer);
    peer_step_[number] = first_[m] + static_cast<int>(i);
    peer_step_[first_[m] + i] = number;
  });
  for_each_step([&](int m, size_t i, const Step& step) {
    if (step.kind == Kind::send && peer_step_[first_[m] + i] < 0) blame(m, i, "{} does not receive it", step.peer);
    if (step.after < 0 || step.after > static_cast<int>(i)) blame(m, i, "it waits for step {}", step.after);
  });
  for (int m = 0; m < n_ && fault_.empty(); ++m) check_rounds(m);
}

void Proof::check_rounds(int m) {
  std::vector<int> latest(members_[m].size() + 1, -1);  // the last round in which one of the first steps receives
  for (size_t i = 0; i < members_[m].size(); ++i) {
    const Step& step = members_[m][i];
    latest[i + 1] = step.kind == Kind::receive ? std::max(latest[i], step.round) : latest[i];
    if (step.kind == Kind::send && latest[step.after] >= step.round)
      blame(m, i, "round {} waits for round {}", step.round, latest[step.after]);
  }
}

void Proof::order_slice(HappensBefore& order, int slice) {
  std::map<std::pair<int, int>, int> last_to;
  for (int m = 0; m < n_; ++m)
    if (slice >= trial_.window) order.order(drained(slice - trial_.window, m), begun(slice, m));
  for_each_step([&](int m, size_t i, const Step& step) {
    const int number = first_[m] + static_cast<int>(i);
    order.order(finished(slice, number), drained(slice, m));
    if (i > 0) order.order(finished_up_to(slice, number - 1), finished_up_to(slice, number));
    if (step.kind != Kind::send) order.order(finished(slice, number), finished_up_to(slice, number));
    order.order(posted(slice, number), finished(slice, number));
    if (step.kind == Kind::receive) return order.order(posted(slice, peer_step_[number]), posted(slice, number));
    order.order(begun(slice, m), posted(slice, number));
    if (step.after > 0) order.order(finished_up_to(slice, first_[m] + step.after - 1), posted(slice, number));
    if (step.kind == Kind::add) return;
    const auto [last, is_first] = last_to.try_emplace({m, step.peer}, number);
    if (!is_first) order.order(posted(slice, std::exchange(last->second, number)), posted(slice, number));
    if (step.opens && slice >= trial_.window) order.order(drained(slice - trial_.window, step.peer), posted(slice, number));
  });
  for (int m = 0; m < n_; ++m) order.order(begun(slice, m), drained(slice, m));
}

// Runs the first slice in an order that the events allow.
void Proof::compute() {
  order_ = HappensBefore(trial_.slices * events_of_slice());
  for (int slice = 0; slice < trial_.slices; ++slice) order_slice(order_, slice);
  const std::vector<int>& sorted = order_.sort();
  if (sorted.size() < static_cast<size_t>(trial_.slices * events_of_slice())) {
    fault_ = "steps wait for one another in a circle";
    return;
  }
  slots_.assign(2 * n_ * n_, kNothing);
  messages_.resize(first_[n_]);
  give_contributions();
  std::vector<std::pair<int, size_t>> step_of(first_[n_]);
  for_each_step([&](int m, size_t i, const Step&) { step_of[first_[m] + i] = {m, i}; });
  for (int event : sorted) {
    if (event < 2 * n_ || event >= events_of_slice() || (event - 2 * n_) % 3 == 2) continue;
    const auto [m, i] = step_of[(event - 2 * n_) / 3];
    execute(m, i, members_[m][i], (event - 2 * n_) % 3 == 1);
  }
  for (int m = 0; m < n_ && fault_.empty(); ++m)
    for (int chunk = 0; chunk < n_; ++chunk)
      if (const Value wanted = result(m, chunk); wanted != kNothing && wanted != slots_[slot(m, {Space::data, chunk})])
        fault_ = fmt::format("member {} ends without the right value in data[{}]", m, chunk);
}

bool Proof::contributes(int m, int chunk) const {
  const int chunks = trial_.cut == Cut::whole ? 1 : n_;
  switch (trial_.collective) {
    case fcclCollBroadcast:
    case fcclCollScatter:
      return m == trial_.group.root && chunk < chunks;
    case fcclCollReduceScatter:
    case fcclCollAllReduce:
    case fcclCollReduce:
      return chunk < chunks;
    default:
      return chunk == m;
  }
}

void Proof::give_contributions() {
  const bool reduces = trial_.collective == fcclCollReduceScatter || trial_.collective == fcclCollAllReduce ||
                       trial_.collective == fcclCollReduce;
  for (int m = 0; m < n_; ++m) {
    for (int chunk = 0; chunk < n_; ++chunk)
      if (contributes(m, chunk)) slots_[slot(m, {Space::data, chunk})] = values_.of(m, chunk);
    if (reduces) slots_[slot(m, {Space::parts, m})] = values_.of(m, trial_.cut == Cut::whole ? 0 : m);
  }
}

// What the member must have in data[chunk] at the end; nothing where anything is right.
Value Proof::result(int m, int chunk) {
  const int root = trial_.group.root;
  const bool is_chunk = chunk == 0 || trial_.cut == Cut::per_member;
  switch (trial_.collective) {
    case fcclCollReduceScatter:
      return chunk == m ? values_.sum_over_members(chunk) : kNothing;
    case fcclCollAllReduce:
      return is_chunk ? values_.sum_over_members(chunk) : kNothing;
    case fcclCollReduce:
      return is_chunk && m == root ? values_.sum_over_members(chunk) : kNothing;
    case fcclCollBroadcast:
      return is_chunk ? values_.of(root, chunk) : kNothing;
    case fcclCollScatter:
      return chunk == m ? values_.of(root, chunk) : kNothing;
    case fcclCollGather:
      return m == root ? values_.of(chunk, chunk) : kNothing;
    default:
      return values_.of(chunk, chunk);
  }
}

void Proof::execute(int m, size_t i, const Step& step, bool arrives) {
  const int number = first_[m] + static_cast<int>(i);
  if (step.kind == Kind::add && arrives) {
    const Value sum = values_.sum(&slots_[slot(m, {Space::parts, 0})], n_);
    if (sum == kNothing) blame(m, i, "it adds a part that it does not have");
    slots_[slot(m, step.here)] = sum;
  }
  if (step.kind == Kind::send && !arrives)
    for (int k = 0; k < step.count; ++k) {
      messages_[number].push_back(slots_[slot(m, step.here, k)]);
      if (messages_[number].back() == kNothing)
        blame(m, i, "it sends {}[{}] without having it", name_of(step.here.space), step.here.index + k);
    }
  if (step.kind == Kind::receive && arrives)
    for (int k = 0; k < step.count; ++k) {
      Value& place = slots_[slot(m, step.here, k)];
      const Value value = messages_[peer_step_[number]][k];
      if (place == value) blame(m, i, "it receives {}[{}] again", name_of(step.here.space), step.here.index + k);
      place = value;
    }
}

void Proof::add_accesses(int slice, std::vector<std::vector<Access>>& accesses) {
  for (int m = 0; m < n_; ++m) {
    const int begin = begun(slice, m);
    const int end = drained(slice, m);
    for (int chunk = 0; chunk < n_; ++chunk) {
      if (contributes(m, chunk)) accesses[slot(m, {Space::data, chunk})].push_back({begin, begin, begin, true});
      if (result(m, chunk) != kNothing) accesses[slot(m, {Space::data, chunk})].push_back({end, end, end, false});
    }
    accesses[slot(m, {Space::parts, m})].push_back({begin, begin, begin, true});
  }
  for_each_step([&](int m, size_t i, const Step& step) {
    const int number = first_[m] + static_cast<int>(i);
    const int done = finished(slice, number);
    if (step.kind == Kind::add) {
      for (int part = 0; part < n_; ++part) accesses[slot(m, {Space::parts, part})].push_back({done, done, done, false});
      accesses[slot(m, step.here)].push_back({done, done, done, true});
    }
    if (step.kind != Kind::send) return;
    const int begin = posted(slice, number);
    const int arrival = finished(slice, peer_step_[number]);
    for (int k = 0; k < step.count; ++k) {
      accesses[slot(m, step.here, k)].push_back({begin, done, arrival, false});
      accesses[slot(step.peer, step.there, k)].push_back({begin, arrival, arrival, true});
    }
  });
}

bool Proof::ordered(const Access& a, const Access& b) {
  for (const auto& [first, second] : {std::pair{&a, &b}, std::pair{&b, &a}})
    for (int end : {first->end, first->other_end})
      if (end == second->begin || order_.reaches(end, second->begin)) return true;
  return false;
}

// Slices that share memory are looked at together.
void Proof::find_races() {
  for (int share = 0; share < trial_.window && share < trial_.slices; ++share) {
    std::vector<std::vector<Access>> accesses(2 * n_ * n_);
    for (int slice = share; slice < trial_.slices; slice += trial_.window) add_accesses(slice, accesses);
    for (size_t place = 0; place < accesses.size(); ++place)
      for (size_t a = 0; a < accesses[place].size(); ++a)
        for (size_t b = 0; b < a; ++b) {
          const Access& one = accesses[place][a];
          const Access& other = accesses[place][b];
          if ((!one.writes && !other.writes) || ordered(one, other)) continue;
          const int index = static_cast<int>(place);
          fault_ = fmt::format("member {}: two accesses to {}[{}] are not ordered", index / (2 * n_),
                               name_of(static_cast<Space>(index / n_ % 2)), index % n_);
          return;
        }
  }
}

}  // namespace

std::string fault_of(const Trial& trial, const std::vector<Steps>& members) { return Proof(trial, members).run(); }

}  // namespace fccl::plan
