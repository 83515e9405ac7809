// Clocks of the four chains of each member, and the accesses that they must order.
#include "plan/memory.h"

#include <fmt/format.h>

#include <algorithm>

#include "plan/meaning.h"

namespace fccl::core::plan {

Memory::Memory(const Trial& trial, const Run& run, const Waits& waits, const std::vector<int>& sorted)
    : trial_(trial), run_(run), n_(trial.group.members), places_(trial.slices * 2 * n_) {
  for (int m = 0; m < n_; ++m)
    for (int chunk = 0; chunk < n_; ++chunk) {
      brings_.push_back(brings(trial, m, chunk));
      wants_.push_back(!wanted(trial, m, chunk).empty());
    }
  run_clocks(waits, sorted);
}

// The clocks leave out the knowledge of other members: no plan needs it.
void Memory::run_clocks(const Waits& waits, const std::vector<int>& sorted) {
  const auto counts = [&](const Waits::Edge& edge) {
    return edge.always && run_.owner_of(edge.cause) == run_.owner_of(edge.event);
  };
  std::vector<int> first(static_cast<size_t>(run_.events()) + 1), causes(waits.edges().size());
  for (const Waits::Edge& edge : waits.edges()) first[edge.event + 1] += counts(edge);
  for (int event = 0; event < run_.events(); ++event) first[event + 1] += first[event];
  std::vector<int> next(first.begin(), first.end() - 1);
  for (const Waits::Edge& edge : waits.edges())
    if (counts(edge)) causes[next[edge.event]++] = edge.cause;
  Clock never;
  never.fill(-1);
  clocks_.assign(run_.events(), never);
  for (const int event : sorted) {
    Clock& clock = clocks_[event];
    for (int i = first[event]; i < first[event + 1]; ++i)
      for (size_t chain = 0; chain < clock.size(); ++chain) clock[chain] = std::max(clock[chain], clocks_[causes[i]][chain]);
    clock[run_.chain_of(event)] = event;
  }
}

std::string Memory::fault() {
  const bool may_be_in_place = !testing::reduces(trial_.collective) && !testing::exchanges(trial_.collective);
  for (int m = 0; m < n_; ++m)
    for (const bool in_place : {false, true})
      if (in_place <= may_be_in_place)
        if (std::string fault = fault_of(m, in_place); !fault.empty()) return fault;
  return "";
}

std::string Memory::fault_of(int m, bool in_place) {
  member_ = m;
  in_place_ = in_place;
  for (std::vector<Access>& accesses : places_) accesses.clear();
  for (int slice = 0; slice < trial_.slices; ++slice) {
    add_host(slice);
    for (size_t i = 0; i < run_.steps_of(m).size(); ++i) add_step(slice, run_.number(m, i));
  }
  for (size_t place = 0; place < places_.size(); ++place)
    if (has_race(places_[place]))
      return fmt::format("member {}: two accesses to chunk {} of its {} are in no order", m, place % n_,
                         place / n_ % 2 != 0 ? "output" : "input");
  return "";
}

// Staged memory is that of an earlier slice again.
std::vector<Memory::Access>& Memory::place(int slice, bool is_output, int chunk) {
  const bool is_staged = is_output ? output_is_staged(trial_.collective) : input_is_staged(trial_, member_);
  const int memory = is_staged && !in_place_ ? slice % kStagedSlices : slice;
  return places_[(memory * 2 + (is_output && !in_place_)) * n_ + trial_.group.around(chunk)];
}

void Memory::add_host(int slice) {
  for (int chunk = 0; chunk < n_; ++chunk) {
    if (brings_[member_ * n_ + chunk]) place(slice, false, chunk).push_back({run_.put(slice, member_), true});
    if (wants_[member_ * n_ + chunk]) place(slice, true, chunk).push_back({run_.taken(slice, member_), false});
  }
}

void Memory::add_step(int slice, int number) {
  const Step& step = run_.step(number);
  const int event = run_.done(slice, number);
  if (step.kind == Kind::add) place(slice, false, step.here.index).push_back({event, false});
  if (step.kind == Kind::add) place(slice, true, step.here.index).push_back({event, true});
  if (step.kind == Kind::send && run_.stager_of(number) == number)
    for (int k = 0; k < step.count; ++k) place(slice, step.after > 0, chunk_of(step) + k).push_back({event, false});
  if (step.kind == Kind::receive && step.here.space == Space::data)
    for (int k = 0; k < step.count; ++k) place(slice, true, step.here.index + k).push_back({event, true});
}

bool Memory::ordered(const Access& a, const Access& b) const {
  return clocks_[b.event][run_.chain_of(a.event)] >= a.event || clocks_[a.event][run_.chain_of(b.event)] >= b.event;
}

bool Memory::has_race(const std::vector<Access>& accesses) const {
  for (const Access& write : accesses)
    for (const Access& other : accesses)
      if (write.writes && &write != &other && !ordered(write, other)) return true;
  return false;
}

}  // namespace fccl::core::plan
