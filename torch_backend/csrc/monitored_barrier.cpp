// A barrier that names the ranks that do not reach it. It goes through torch's store, so that a late rank does not end the
// group.
#include <c10/util/Exception.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <string>
#include <vector>

#include "backend.h"
#include "errors.h"

namespace fccl::torch {
namespace {

using std::chrono::milliseconds;

// Time beyond its own timeout that rank 0 may need to read which ranks have come and to answer them.
constexpr milliseconds kAnswerTime{10'000};
constexpr const char* kPassed = "passed";

// One barrier of a group; its prefix is the same on all ranks. Each rank removes its arrival and its answer, so that the store
// may serve another group of this name later.
struct Meeting {
  c10d::Store& store;
  std::string prefix;
  std::string attempt;  // for messages
  milliseconds timeout;

  std::string arrival(int rank) const { return c10::str(prefix, rank); }
  std::string answer(const std::string& ticket) const { return prefix + "answer/" + ticket; }

  bool await(const std::vector<std::string>& keys, milliseconds time) const {
    try {
      store.wait(keys, std::max(time, milliseconds(1)));
      return true;
    } catch (const c10::Error&) {
      // If the store is gone, this throws again.
      return store.check(keys);
    }
  }

  std::string text_at(const std::string& key) const {
    const std::vector<uint8_t> bytes = store.get(key);
    return {bytes.begin(), bytes.end()};
  }

  void give_up(const std::string& cause) const { check(fcclTimeout, attempt, cause.c_str()); }
};

std::string joined(const std::vector<int>& ranks, size_t from) {
  std::string text;
  for (size_t i = from; i < ranks.size(); ++i) text += c10::str(i == from ? "" : ", ", ranks[i]);
  return text;
}

// Uses Gloo's words, which programs look for.
std::string fault_of(const std::vector<int>& missing, milliseconds timeout, bool all_in_one) {
  const std::string how = c10::str(" failed to pass monitoredBarrier in ", timeout.count(), " ms");
  if (missing.size() == 1) return c10::str("Rank ", missing[0], how);
  if (all_in_one) return c10::str("Ranks ", joined(missing, 0), how);
  return c10::str("Rank ", missing[0], how, ", nor did ", joined(missing, 1));
}

void await_all(const Meeting& meeting, int size, bool all_in_one) {
  if (meeting.timeout <= milliseconds(0)) return meeting.give_up("Rank 0 timed out in monitoredBarrier after 0 ms");
  meeting.store.set(meeting.arrival(0), kPassed);
  std::vector<std::string> arrivals;
  for (int rank = 1; rank < size; ++rank) arrivals.push_back(meeting.arrival(rank));
  const bool complete = meeting.await(arrivals, meeting.timeout);
  std::vector<int> missing;
  std::vector<std::string> tickets;
  for (int rank = 1; rank < size; ++rank) {
    if (complete || meeting.store.check({meeting.arrival(rank)}))
      tickets.push_back(meeting.text_at(meeting.arrival(rank)));
    else
      missing.push_back(rank);
  }
  const std::string fault = missing.empty() ? std::string() : fault_of(missing, meeting.timeout, all_in_one);
  for (const std::string& ticket : tickets) meeting.store.set(meeting.answer(ticket), fault.empty() ? kPassed : fault);
  meeting.store.deleteKey(meeting.arrival(0));
  if (!fault.empty()) meeting.give_up(fault);
}

// Makes a new ticket each time, so that no rank takes the answer to an earlier group of its name for its own.
std::string new_ticket() {
  std::random_device random;
  return c10::str(random(), "-", random());
}

void come_to_rank_0(const Meeting& meeting, int rank) {
  const std::string ticket = new_ticket();
  const std::string answer = meeting.answer(ticket);
  meeting.store.set(meeting.arrival(rank), ticket);
  // Rank 0 may come up to this rank's timeout late, and then waits for its own timeout.
  bool answered = meeting.await({answer}, meeting.timeout);
  if (!answered && meeting.store.check({meeting.arrival(0)})) answered = meeting.await({answer}, meeting.timeout + kAnswerTime);
  // Rank 0 answers before it leaves, and may have done both since the first look.
  if (!answered) answered = meeting.store.check({answer});
  const std::string said = answered ? meeting.text_at(answer) : std::string();
  meeting.store.deleteKey(meeting.arrival(rank));
  meeting.store.deleteKey(answer);
  if (said == kPassed) return;
  meeting.give_up(c10::str("Rank ", rank, " successfully reached monitoredBarrier, but received errors while waiting for ",
                           "send/recv from rank 0: ",
                           answered ? "it said that " + said
                                    : c10::str("it has not come to it within ", meeting.timeout.count(),
                                               " ms, or has given up waiting for this rank")));
}

}  // namespace

void Backend::monitoredBarrier(const c10d::BarrierOptions& options, bool wait_all_ranks) {
  const Communicator& communicator = cpu_->communicator();
  const Meeting meeting{*communicator.store(), c10::str(communicator.key(), "/monitored_barrier/", monitored_barriers_++, "/"),
                        communicator.attempt_of("fccl:monitored_barrier"),
                        options.timeout < milliseconds(0) ? timeout_.load() : options.timeout};
  if (getRank() != 0) return come_to_rank_0(meeting, getRank());
  await_all(meeting, getSize(), wait_all_ranks);
}

}  // namespace fccl::torch
