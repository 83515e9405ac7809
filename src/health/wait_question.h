// WaitQuestioner: asks ranks of other hosts for whom they wait; with the question and the answer as values.
#pragma once

#include <optional>

#include "base/result.h"
#include "base/signature.h"
#include "health/wait_line.h"

namespace fccl::core {

using WaitQuestion = WaitLine::Wanted;

struct WaitAnswer {
  LineEnd end;                     // the line begins with the rank that answers
  std::optional<CallInFull> call;  // the last call of the rank at that end, if known
  std::optional<Error> failure;    // the communicator's, if it has failed there
};

// A WaitJudge owns it, which outlives the network: nobody asks or tells after the communicator's last call. Any thread may
// call; no function waits for a peer.
class WaitQuestioner {
 public:
  WaitQuestioner() = default;
  virtual ~WaitQuestioner() = default;
  WaitQuestioner(const WaitQuestioner&) = delete;
  WaitQuestioner& operator=(const WaitQuestioner&) = delete;

  // Asks a rank of another host, whose answer the judge hears, if it comes. False: there was no room for the question.
  virtual bool ask(int rank, const WaitQuestion& question) = 0;
  // Tells the ranks that have asked lately that the communicator has failed.
  virtual void tell(const Error& failure) = 0;
};

}  // namespace fccl::core
