// Wait: one wait of a rank, as the slow path that judges it sees it.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>

#include "os/clock.h"
#include "waiting/counter.h"
#include "waiting/wait.h"

namespace fccl::core {

struct Task;
struct TransferEnd;

// The call that waits, the point that it waits for, and since when; the slow path judges the wait by it.
struct Wait {
  Wait(const Task& collective, std::chrono::milliseconds at_most) : task(&collective), timeout(at_most) {}
  Wait(const TransferEnd& end, std::chrono::milliseconds at_most, Poll look_again)
      : transfer(&end), timeout(at_most), catch_up(look_again) {}

  const Task* task = nullptr;  // either this or the transfer is set
  const TransferEnd* transfer = nullptr;
  std::chrono::milliseconds timeout;
  Poll catch_up{};                    // poll to run before the last look at what is awaited
  Awaited awaited{};                  // the point that the slow path last looked at
  Clock::time_point began{};          // time of its first look at that point
  Clock::time_point broken{};         // time when it first found the awaited rank gone or out of reach
  Clock::time_point looked{};         // time of its last look
  Clock::time_point shown_since{};    // since when the process's page shows the wait; none: it does not
  Clock::time_point next_search{};    // time of the next search for deaths of ranks that this wait is not for
  size_t searched_from = 0;           // place among the ranks of this host at which the next search begins
  std::optional<int> dead{};          // rank that a search has found dead
  Clock::time_point dead_since{};     // time when it was found
  Clock::time_point next_question{};  // time of the next question to the awaited rank
  Clock::time_point unanswered{};     // since when it has been asked without an answer; none: it has answered
  Clock::time_point questioned{};     // time of the last look at its answers
  bool reported = false;
  bool is_told = false;  // other hosts have been told of the wait
  bool warns = true;     // the log gets a warning after a while
};

// True if the awaited point is reached, after a last poll for events that only a poll brings in.
bool is_reached(const Wait& wait, const Awaited& awaited);

}  // namespace fccl::core
