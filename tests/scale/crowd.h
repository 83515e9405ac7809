// Crowd: thousands of ranks in one process, whose calls one thread resumes in turn; turns are its clock.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "wire/bent_transport.h"
#include "wire/group.h"

namespace fccl::core::testing {

// The cost of a call, of all ranks.
struct CrowdCost {
  uint64_t messages = 0;          // all ranks together
  uint64_t messages_of_rank = 0;  // the rank that sends most
  int turns = 0;                  // in each of them every rank polled and went on once, so a message takes one
};

// How the call of a rank stands.
enum class CallState : uint8_t { open, done, differs };

// Owned by a test, and used by its thread. Hosts have equally many ranks.
class Crowd {
 public:
  Crowd(int hosts, int ranks_per_host);
  ~Crowd();
  Crowd(const Crowd&) = delete;
  Crowd& operator=(const Crowd&) = delete;

  int ranks() const { return group_.shape().size(); }
  // Runs one call of every rank to its end; the test fails if that takes kMostTurns. `call_of` says what a rank calls.
  CrowdCost run(const std::function<Call(int rank)>& call_of);
  // Begins one call of every rank, which `absent` never makes, and gives each far more turns than a call takes that all make
  // alike. Returns by rank how the calls stand then, and ends them.
  std::vector<CallState> attempt(const std::function<Call(int rank)>& call_of, int absent = -1);

 private:
  void progress();
  std::vector<Group::Begun> begin(const std::function<Call(int rank)>& call_of);
  void turn(std::vector<Group::Begun>& calls, std::vector<bool>& rests);

  std::vector<BentTransport*> transports_;  // by rank; the group owns them
  Group group_;
  uint64_t number_ = 0;
};

}  // namespace fccl::core::testing
