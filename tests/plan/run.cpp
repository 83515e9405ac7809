// Joining the ends of messages, and what each event of the executor waits for.
#include "plan/run.h"

#include <fmt/format.h>

#include <algorithm>

#include "plan/meaning.h"

namespace fccl::core::plan {

Run::Run(const Trial& trial, const std::vector<Steps>& members)
    : trial_(trial), members_(members), n_(trial.group.members), first_(n_ + 1, 0) {
  for (int m = 0; m < n_; ++m) {
    first_[m + 1] = first_[m] + static_cast<int>(members[m].size());
    bool gets = false;
    for (int chunk = 0; chunk < n_; ++chunk) gets = gets || !wanted(trial, m, chunk).empty();
    gets_.push_back(gets);
    for (const Step& step : members[m]) {
      steps_.push_back(&step);
      owner_.push_back(m);
    }
  }
  for (std::vector<int>* numbers : {&other_end_, &place_, &freed_by_, &stager_}) numbers->assign(steps_.size(), -1);
  sends_.resize(n_ * n_);
  receives_.resize(n_ * n_);
}

int Run::owner_of(int event) const {
  const int place = event % per_slice();
  return place < 2 * n_ ? place % n_ : owner_[place - 2 * n_];
}

Run::Chain Run::chain_of(int event) const {
  const int place = event % per_slice();
  if (place < 2 * n_) return place < n_ ? kPuts : kTakes;
  return steps_[place - 2 * n_]->kind == Kind::send ? kSends : kReceives;
}

std::string Run::join() {
  for (int m = 0; m < n_; ++m)
    for (size_t i = 0; i < members_[m].size(); ++i)
      if (const std::string fault = fault_of_step(m, i); !fault.empty())
        return fmt::format("member {}, step {}: {}", m, i, fault);
  if (std::string fault = match(); !fault.empty()) return fault;
  for (int m = 0; m < n_; ++m) {
    if (std::string fault = follow_landing(m); !fault.empty()) return fault;
    if (std::string fault = fill_stages(m); !fault.empty()) return fault;
  }
  return "";
}

// The fault of one step by itself, if any. Parts go from the member whose they are to the one that adds them.
std::string Run::fault_of_step(int m, size_t i) const {
  const Step& step = members_[m][i];
  if (step.after < 0 || step.after > static_cast<int>(i)) return fmt::format("it waits for step {}", step.after);
  for (int k = 0; k < step.count; ++k)
    if (const int chunk = trial_.group.around(step.here.index + k);
        step.kind != Kind::send && step.here.space == Space::data && !has_room(trial_, m, chunk))
      return fmt::format("it has no memory for chunk {}", chunk);
  if (step.kind == Kind::add) return "";
  if (step.peer < 0 || step.peer >= n_ || step.peer == m) return fmt::format("the peer is {}", step.peer);
  if (step.here.space == Space::data) return "";
  if (step.here.space == Space::given)
    return step.kind == Kind::send && step.after == 0 ? "" : fmt::format("given[{}] is written or waited for", step.here.index);
  const bool is_own = step.kind == Kind::send ? step.here.index == m && step.after == 0 : step.here.index == step.peer;
  return is_own && step.count == 1 ? "" : fmt::format("parts[{}] is not its own to move", step.here.index);
}

std::string Run::match() {
  for (int number = 0; number < steps(); ++number) {
    const Step& step = *steps_[number];
    const int m = owner_[number];
    if (step.kind == Kind::add) continue;
    std::vector<int>& pair = step.kind == Kind::send ? sends_[m * n_ + step.peer] : receives_[step.peer * n_ + m];
    place_[number] = static_cast<int>(pair.size());
    pair.push_back(number);
  }
  for (int pair = 0; pair < n_ * n_; ++pair) {
    if (sends_[pair].size() != receives_[pair].size())
      return fmt::format("member {} sends {} messages to {}, which receives {}", pair / n_, sends_[pair].size(), pair % n_,
                         receives_[pair].size());
    for (size_t k = 0; k < sends_[pair].size(); ++k) {
      const Step& send = *steps_[sends_[pair][k]];
      const Step& receive = *steps_[receives_[pair][k]];
      if (send.there != receive.here || send.here != receive.there || send.count != receive.count)
        return fmt::format("member {} and {} disagree on message {} between them", pair / n_, pair % n_, k);
      other_end_[sends_[pair][k]] = receives_[pair][k];
      other_end_[receives_[pair][k]] = sends_[pair][k];
    }
  }
  return "";
}

// Data is copied out of landing as it arrives; parts stay there until they are added.
std::string Run::follow_landing(int m) {
  std::vector<int> held(n_, -1);
  for (int number = first_[m]; number < first_[m + 1]; ++number) {
    const Step& step = *steps_[number];
    if (step.kind == Kind::receive) {
      if (held[step.peer] >= 0)
        return fmt::format("member {} takes a message of {} before it has added the part that arrived earlier", m, step.peer);
      (step.here.space == Space::parts ? held[step.peer] : freed_by_[number]) = number;
    }
    for (int q = 0; step.kind == Kind::add && q < n_; ++q) {
      if (q == m) continue;
      if (held[q] < 0) return fmt::format("member {} adds a part of {} that it does not have", m, q);
      freed_by_[held[q]] = number;
      held[q] = -1;
    }
  }
  for (int q = 0; q < n_; ++q)
    if (held[q] >= 0) return fmt::format("member {} never adds a part of {}", m, q);
  return "";
}

// As Exchange::stage has it: what looks like the message staged last is sent out of its stage.
std::string Run::fill_stages(int m) {
  int last = -1;
  for (int number = first_[m]; number < first_[m + 1]; ++number) {
    const Step& step = *steps_[number];
    if (step.kind != Kind::send) continue;
    const bool is_staged =
        last >= 0 && step.here == steps_[last]->here && step.count == steps_[last]->count && step.after == steps_[last]->after;
    if (!is_staged) last = number;
    stager_[number] = last;
    if (step.there.space != steps_[last]->there.space) return fmt::format("member {} sends one stage as a part and as data", m);
  }
  return "";
}

Waits Run::waits() const {
  Waits waits(events());
  std::vector<Ends> ends;  // by slice and member
  for (int slice = 0; slice < trial_.slices; ++slice)
    for (int m = 0; m < n_; ++m) {
      ends.push_back(order_steps(waits, ends, slice, m));
      order_host(waits, ends, slice, m);
    }
  return waits;
}

// The host puts the input of a slice, then takes the output of the slice four before it; staged memory must be free for that.
void Run::order_host(Waits& waits, const std::vector<Ends>& ends, int slice, int m) const {
  if (slice > 0) {
    waits.order(put(slice - 1, m), put(slice, m));
    waits.order(taken(slice - 1, m), taken(slice, m));
  }
  if (slice > kStagedSlices) waits.hinder(taken(slice - 1 - kStagedSlices, m), put(slice, m));
  waits.order(put(std::min(slice + kStagedSlices, trial_.slices - 1), m), taken(slice, m));
  const Ends& now = ends[slice * n_ + m];
  if (now.received >= 0) waits.order(now.received, taken(slice, m));
  if (!input_is_staged(trial_, m) || slice < kStagedSlices) return;
  const Ends& before = ends[(slice - kStagedSlices) * n_ + m];
  for (const int end : {before.sent, before.received})
    if (end >= 0) waits.order(end, put(slice, m));
}

Run::Ends Run::order_steps(Waits& waits, const std::vector<Ends>& ends, int slice, int m) const {
  Ends now = slice > 0 ? ends[(slice - 1) * n_ + m] : Ends{};
  const int begin = now.sent;
  std::vector<int> received{-1};  // the last receive or addition among so many steps
  for (int number = first_[m]; number < first_[m + 1]; ++number) {
    const Step& step = *steps_[number];
    const int event = done(slice, number);
    int& cursor = step.kind == Kind::send ? now.sent : now.received;
    if (cursor >= 0) waits.order(cursor, event);
    if (step.kind != Kind::receive) waits.order(put(slice, m), event);
    if (step.kind == Kind::send) {
      if (const int last = received[step.after]; last >= 0) waits.order(last, event);
      order_credit(waits, slice, number);
    } else {
      order_room(waits, ends, slice, number);
      if (step.kind == Kind::receive) waits.order(done(slice, other_end_[number]), event);
      // It does not wait if the sends are a slice behind.
      if (step.kind == Kind::add && now.sent != begin) waits.hinder(now.sent, event);
    }
    cursor = event;
    received.push_back(step.kind == Kind::send ? received.back() : event);
  }
  return now;
}

// A peer tells what landing is free when that is half a window, so the last of these may have to be free, too.
void Run::order_credit(Waits& waits, int slice, int send) const {
  const int m = owner_[send];
  const int peer = steps_[send]->peer;
  const int in_slice = static_cast<int>(sends(m, peer).size());
  const int message = slice * in_slice + place_[send];
  const int freed = message - trial_.window + std::max(1, trial_.window / 2) - 1;
  if (freed < 0 || message < trial_.window) return;
  const int receive = receives_[m * n_ + peer][freed % in_slice];
  waits.hinder(done(freed / in_slice, freed_by_[receive]), done(slice, send));
}

// Staged output is free again when the host has taken it, or where nobody takes it when both cursors have passed.
void Run::order_room(Waits& waits, const std::vector<Ends>& ends, int slice, int number) const {
  if (!output_is_staged(trial_.collective) || slice < kStagedSlices) return;
  const int m = owner_[number];
  const Ends& before = ends[(slice - kStagedSlices) * n_ + m];
  const int free = gets_[m] ? taken(slice - kStagedSlices, m) : before.sent;
  if (free >= 0) waits.order(free, done(slice, number));
}

}  // namespace fccl::core::plan
