// Which entries of each program imply others, and which order nothing that matters.
#include "cuda/right_alterations.h"

namespace fccl::core::testing {

Entry::Kind next_kind(const std::vector<Entry>& program, size_t at) { return program[next_in_order(program, at)].kind; }

namespace {

using How = Alteration::How;
using Kind = Entry::Kind;

bool are(const std::vector<Entry>& program, size_t at, Kind first, Kind second) {
  return program[at].kind == first && next_kind(program, at) == second;
}

bool is_last_of_its_kind(const std::vector<Entry>& program, size_t at) {
  for (size_t i = at + 1; i < program.size(); ++i)
    if (program[i].kind == program[at].kind) return false;
  return true;
}

// Alterations that are right, too, and at most slower: a `ready` is said again, for more, by the next one; copies in of later
// sub-calls need not wait for it, nor it for earlier waits; a wait may come sooner than it must; the end may be recorded
// before it is said to the host.
bool is_right(const std::vector<Entry>& program, const Alteration& alteration) {
  const size_t at = alteration.entry;
  if (alteration.how == How::drop) return program[at].kind == Kind::ready && !is_last_of_its_kind(program, at);
  if (alteration.how != How::move) return false;
  return are(program, at, Kind::ready, Kind::copy_in) || are(program, at, Kind::ready, Kind::finished) ||
         are(program, at, Kind::copy_out, Kind::finished) || are(program, at, Kind::drained, Kind::record);
}

// The step of an entry that is one of its kind in each step.
size_t step_of(const std::vector<Entry>& program, size_t at) {
  size_t step = 0;
  for (size_t i = 0; i < at; ++i)
    if (program[i].kind == program[at].kind) ++step;
  return step;
}

// An AllGather, a program of five steps with four slots, filled two steps ahead on one queue, implies some of its own waits, by
// the order in which each GPU works off its entries. Steps count from 0.
//   all_taken of step 0  the peer filled the last slot of the call before behind emptying the one that is filled now
//   all_taken of step 3  the peer has filled its first slot of this call, behind the whole call before
//   all_done of step 2   this GPU has filled its slot of step 4, so the peer has emptied that of step 0, behind filling that of
//                        step 2
bool is_implied(Kind wait, size_t step) {
  return (wait == Kind::all_taken && (step == 0 || step == 3)) || (wait == Kind::all_done && step == 2);
}

// So the peer asks for a step's bytes, and for the slot that it leaves, only where they are not implied: a slot is used again
// four steps later, in the next call by its steps 0, 1, 2 and 3.
bool is_asked_for(Kind said, size_t step) {
  if (said == Kind::done) return !is_implied(Kind::all_done, step);
  return !is_implied(Kind::all_taken, (step + 4) % 5);
}

bool moves(Kind kind) { return kind == Kind::copy_in || kind == Kind::copy_out || kind == Kind::sum; }

bool is_said(Kind kind) { return kind == Kind::done || kind == Kind::taken; }

// Of each program of steps: what may come behind the next entry, since nothing stands between that depends on it. `ready`
// begins the entry alone, which may come early; a wait may come sooner, and what is said later.
bool may_come_later(const std::vector<Entry>& program, size_t at) {
  const Kind kind = program[at].kind, next = next_kind(program, at);
  const bool waits_next = next == Kind::all_done || next == Kind::all_taken;
  return ((is_said(kind) || kind == Kind::ready) && waits_next) || are(program, at, Kind::await, Kind::ready) ||
         are(program, at, Kind::drained, Kind::record);
}

// What is counted is said again by the next step.
bool is_right_of_steps(const std::vector<Entry>& program, const Alteration& alteration) {
  const size_t at = alteration.entry, step = step_of(program, at);
  const Kind kind = program[at].kind;
  if (alteration.how == How::drop) return is_implied(kind, step) || (is_said(kind) && !is_last_of_its_kind(program, at));
  if (alteration.how == How::miscount)
    return is_implied(kind, step) || kind == Kind::ready || (is_said(kind) && !is_asked_for(kind, (step + 1) % 5));
  const Kind next = next_kind(program, at);
  if (moves(next)) return is_implied(kind, step);
  if (moves(kind)) return !is_asked_for(next, step);
  return may_come_later(program, at) || are(program, at, Kind::taken, Kind::drained);
}

// What follows is of programs with a queue for sums, which order nothing but by words and two marks: that of the fork, and the
// one by which sums are joined. That sums wait for the fork is implied while nothing fails: they wait for all_done, so for what
// this rank has written behind the fork. A call that has failed waits for nothing else
// (CudaSums.of_a_failed_call_wait_for_its_stream).
bool is_fork_of_sums(const std::vector<Entry>& program, size_t at) {
  return program[at].kind == Kind::await && step_of(program, at) == 1;
}

// The mark of the sums need not cover the last `taken`, nor `drained` what the mark covers, since the worker ends no call
// before it sees that `taken`.
bool may_come_later_beside_sums(const std::vector<Entry>& program, size_t at) {
  return may_come_later(program, at) || is_fork_of_sums(program, at) || are(program, at, Kind::taken, Kind::record) ||
         are(program, at, Kind::await, Kind::drained);
}

// A ReduceScatter implies none of its waits.
bool is_right_of_sums(const std::vector<Entry>& program, const Alteration& alteration) {
  const size_t at = alteration.entry;
  const Kind kind = program[at].kind;
  if (alteration.how == How::drop) return is_fork_of_sums(program, at) || (is_said(kind) && !is_last_of_its_kind(program, at));
  if (alteration.how == How::miscount) return kind == Kind::ready;
  return may_come_later_beside_sums(program, at);
}

// An AllReduce has four steps, the last one for results alone. The wait for results, behind a sum or where the last sum would
// be, is never implied, and implies much.
//   all_taken before a slot is filled  the step that used it had its results taken in the call before, or is one without sums
//   all_done of step 3                 nobody adds in it
bool waits_for_results(const std::vector<Entry>& program, size_t at) {
  return program[at].kind == Kind::all_taken && (program[at - 1].kind == Kind::sum || program[at - 1].kind == Kind::all_done);
}

bool is_implied_with_results(const std::vector<Entry>& program, size_t at) {
  const Kind kind = program[at].kind;
  return (kind == Kind::all_taken && !waits_for_results(program, at)) || (kind == Kind::all_done && step_of(program, at) == 3);
}

bool is_right_with_results(const std::vector<Entry>& program, const Alteration& alteration) {
  const size_t at = alteration.entry, step = step_of(program, at);
  const Kind kind = program[at].kind;
  const bool implied = is_implied_with_results(program, at);
  // What a rank has taken, it waits for itself before the next step says more.
  if (alteration.how == How::drop)
    return implied || is_fork_of_sums(program, at) || (kind == Kind::done && !is_last_of_its_kind(program, at));
  // No peer asks for what step 3 fills and leaves.
  if (alteration.how == How::miscount) return implied || kind == Kind::ready || (is_said(kind) && step == 2);
  const Kind next = next_kind(program, at);
  if (moves(next)) return implied || moves(kind);
  // The last copy of a step is that of the rank's own results, which no peer asks for; a sum may wait for others' results.
  if (moves(kind)) return next == Kind::all_taken || (next == Kind::taken && kind != Kind::sum);
  return may_come_later_beside_sums(program, at) || are(program, at, Kind::all_done, Kind::all_taken) ||
         are(program, at, Kind::all_taken, Kind::done);
}

}  // namespace

bool is_right_of(Subject subject, const std::vector<Entry>& program, const Alteration& alteration) {
  switch (subject) {
    case Subject::bounce:
      return is_right(program, alteration);
    case Subject::steps:
      return is_right_of_steps(program, alteration);
    case Subject::sums:
      return is_right_of_sums(program, alteration);
    case Subject::shared_sums:
      break;
  }
  return is_right_with_results(program, alteration);
}

}  // namespace fccl::core::testing
