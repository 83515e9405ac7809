// Times and checks the calls of one rank for one row of the table.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "accuracy.h"
#include "call_memory.h"
#include "library.h"
#include "run.h"

namespace fccl::perf {

// Describes one row: the call, its place and its size.
struct Subject {
  const ElementType& type;
  const Operator& op;
  const Samples* samples;  // null if the collective does not reduce
  Place place;
  Layout layout;
  std::size_t bytes;      // size of the larger buffer
  double bus_factor = 1;  // bus bandwidth over algorithm bandwidth
};

// One rank's calls. One thread makes and uses it; all ranks make the same calls of it in the same order. Ends all processes of
// the run when a call of the library fails.
class Meter {
 public:
  Meter(const Run& run, int thread, Library& library, Memory& memory);

  void warm_up(const Subject& subject);
  Measurement measure(const Subject& subject, bool in_place);
  // Returns how many checks of this rank have seen a wrong element so far.
  std::uint64_t bad_checks() const { return bad_checks_; }

 private:
  // Seconds per message of a call.
  struct Timed {
    double until_done;
    double until_issued;
  };

  bool checks() const { return run_.arguments.checks > 0; }
  std::size_t timed_calls() const;
  Buffers buffers(const Subject& subject, bool in_place, std::size_t part) const;
  Trial trial(const Subject& subject, std::uint64_t number) const;
  void start(const Subject& subject, const Buffers& buffers);
  void finish();
  Traffic traffic() const;
  void start_together(const Subject& subject, const Buffers& buffers);
  void start_blocking(const Subject& subject, const Buffers& buffers);
  // If peers map the buffers: makes one call on each part, so that no page is new to the timed calls.
  void use_all_parts(const Subject& subject, bool in_place, const Parts& parts);
  // Writes the inputs of an iteration's calls, which begins with `call`, and waits until the other ranks have done so.
  void refresh(const Subject& subject, bool in_place, const Parts& parts, std::size_t call);
  Timed time_calls(const Subject& subject, bool in_place, const Parts& parts);
  Iterations time_iterations(const Subject& subject, bool in_place);
  Skew time_skewed(const Subject& subject, bool in_place);
  // Returns the greatest value of all ranks in each place.
  std::vector<double> maxima(const std::vector<double>& own);
  // Copies the bytes that `fill(host memory)` writes to `at`.
  template <class Fill>
  void write(std::byte* at, std::size_t bytes, Fill fill);
  void poison_result(std::byte* at, std::size_t bytes);
  void fill(const Trial& trial, std::byte* send);
  const std::byte* look(const std::byte* at, std::size_t bytes);
  // Gives each of the last timed calls inputs of its own, and checks their results.
  void prepare_last_calls(const Subject& subject, bool in_place, const Parts& parts);
  std::uint64_t count_wrong_in_last_calls(const Subject& subject, bool in_place, const Parts& parts);
  std::uint64_t count_wrong_in_checks(const Subject& subject, bool in_place);
  std::uint64_t count(const Trial& trial, const std::byte* recv);
  // Counts the bytes that are no longer poison.
  std::uint64_t count_overwritten(const std::byte* guard);
  double error_on_random_data(const Subject& subject, bool in_place);

  const Run& run_;
  const int thread_;
  Library& library_;
  Memory& memory_;
  CallMemory call_memory_;
  std::uint64_t last_trial_ = 0;  // numbers are never used twice, so that an older result cannot pass for a right one
  std::uint64_t bad_checks_ = 0;
};

}  // namespace fccl::perf
