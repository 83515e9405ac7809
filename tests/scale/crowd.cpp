// Runs the calls of a crowd.
#include "scale/crowd.h"

#include <algorithm>
#include <utility>

namespace fccl::core::testing {
namespace {

// Far more than any call takes.
constexpr int kMostTurns = 10000;
constexpr int kTurnsToSettle = 4;
// A short call takes a turn for each round, of which 4,096 hosts have 12, and a few more.
constexpr int kTurnsOfAttempt = 100;

// A call moves little here, so that the memory of thousands of ranks fits into one process.
GroupShape shape_of(int hosts, int ranks_per_host) {
  return {.ranks = std::vector<int>(static_cast<size_t>(hosts), ranks_per_host),
          .window = 1,
          .slot_bytes = 64,
          .stages = 1,
          // A member's 8 bytes go with those of half the hosts.
          .payload_bytes = static_cast<size_t>(hosts) * 4,
          .host_slot_bytes = 256,
          .polled_by = PolledBy::callers_alone};
}

}  // namespace

Crowd::Crowd(int hosts, int ranks_per_host)
    : group_(shape_of(hosts, ranks_per_host), {}, [this](int, std::unique_ptr<Transport> inner) {
        auto counting = std::make_unique<BentTransport>(std::move(inner));
        transports_.push_back(counting.get());
        return counting;
      }) {}

// The group would wait for each rank on a thread of its own.
Crowd::~Crowd() {
  for (int turn = 0; turn < kTurnsToSettle; ++turn) progress();
}

void Crowd::progress() {
  for (int rank = 0; rank < ranks(); ++rank) group_.lane(rank).progress();
}

std::vector<Group::Begun> Crowd::begin(const std::function<Call(int rank)>& call_of) {
  for (BentTransport* transport : transports_) transport->posted = 0;
  std::vector<Group::Begun> calls;
  for (int rank = 0; rank < ranks(); ++rank) calls.push_back(group_.begin(rank, call_of(rank), number_, ""));
  ++number_;
  return calls;
}

// Every rank polls, and goes on unless it rests; it rests once its call has ended.
void Crowd::turn(std::vector<Group::Begun>& calls, std::vector<bool>& rests) {
  // Peers hear of a rank that has ended its call only while it polls on.
  progress();
  for (size_t rank = 0; rank < calls.size(); ++rank) {
    if (rests[rank]) continue;
    Group::Begun& call = calls[rank];
    call.network.poll(call.network.context);
    if (call.phase.awaited().reached()) rests[rank] = call.phase.resume();
  }
}

CrowdCost Crowd::run(const std::function<Call(int rank)>& call_of) {
  std::vector<Group::Begun> calls = begin(call_of);
  std::vector<bool> ended;
  for (Group::Begun& call : calls) ended.push_back(call.phase.resume());
  CrowdCost cost;
  for (; std::ranges::count(ended, false) > 0 && cost.turns < kMostTurns; ++cost.turns) turn(calls, ended);
  for (size_t rank = 0; rank < calls.size(); ++rank) {
    EXPECT_TRUE(ended[rank]) << "rank " << rank << " has not ended after " << cost.turns << " turns";
    EXPECT_TRUE(!ended[rank] || std::holds_alternative<Done>(calls[rank].phase.outcome())) << "rank " << rank;
  }
  for (const BentTransport* transport : transports_) {
    cost.messages += transport->posted;
    cost.messages_of_rank = std::max(cost.messages_of_rank, transport->posted);
  }
  return cost;
}

std::vector<CallState> Crowd::attempt(const std::function<Call(int rank)>& call_of, int absent) {
  std::vector<Group::Begun> calls = begin(call_of);
  std::vector<bool> rests;
  for (int rank = 0; rank < ranks(); ++rank) rests.push_back(rank == absent || calls[static_cast<size_t>(rank)].phase.resume());
  for (int turns = 0; turns < kTurnsOfAttempt; ++turns) turn(calls, rests);
  std::vector<CallState> states(calls.size(), CallState::open);
  for (size_t rank = 0; rank < calls.size(); ++rank) {
    if (std::cmp_equal(rank, absent)) continue;
    const Group::Begun& call = calls[rank];
    if (rests[rank])
      states[rank] = std::holds_alternative<Done>(call.phase.outcome()) ? CallState::done : CallState::differs;
    else if (call.inter_host_call->differing_rank() >= 0)
      states[rank] = CallState::differs;
  }
  return states;
}

}  // namespace fccl::core::testing
