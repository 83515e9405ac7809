// Part: what one rank does in a run: it joins, calls, meets the fault, says what it saw, and cleans up.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "faults/board.h"
#include "faults/draw.h"

namespace fccl::core::faults {

// Owned by the rank's process, whose one thread plays it; the faults that a rank brings upon itself come from a second one.
class Part {
 public:
  Part(const Draw& draw, int rank, Board& board);

  // Returns when every rank that lives has come to its end. The board then has what it found wrong.
  void play();

 private:
  bool join();
  void warm_up();
  void meet_the_moment();
  void call_until_failure();
  void call_what_differs();
  void wait_until_aborted();
  void split_until_failure();
  void ask_until_failure();
  void finish_in_disorder();
  fcclResult_t call(const std::vector<testing::Recipe>& recipes);
  fcclResult_t send_to_all(const std::vector<testing::Recipe>& recipes);
  bool is_last(int64_t iteration);
  void leave_and_exit();
  void fail_with(fcclResult_t code, const std::string& cause);
  void check_that_failure_stays();
  void end();
  void check_leftovers();
  void complain(const std::string& text);
  void start_own_fault();

  Report& report() const { return board_.reports[rank_]; }
  bool is_victim() const { return draw_.is_victim(rank_); }

  const Draw& draw_;
  int rank_;
  Board& board_;
  int descriptors_;
  int threads_;
  fcclComm_t comm_ = nullptr;
  fcclStream_t stream_ = nullptr;
  bool aborted_ = false;  // the handle is gone
  std::thread fault_;
};

}  // namespace fccl::core::faults
