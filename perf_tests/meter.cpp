// Issues the calls, reads the clock around them and checks the results.
#include "meter.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <thread>

namespace fccl::perf {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point began) { return std::chrono::duration<double>(Clock::now() - began).count(); }

// Peers do not read the buffers of calls up to this size in place.
constexpr std::size_t kMostInSlots = 4096;

// Returns how long this thread has waited for a processor so far, by the kernel's count; zero if the kernel does not count.
double queued_seconds() {
  std::ifstream schedstat("/proc/thread-self/schedstat");
  double ran = 0;
  double waited = 0;
  schedstat >> ran >> waited;
  return waited * 1e-9;
}

Combine combine_of(Average average) {
  switch (average) {
    case Average::rank_0:
      return Combine::first;
    case Average::minimum:
      return Combine::minimum;
    case Average::maximum:
      return Combine::maximum;
    default:
      return Combine::mean;
  }
}

// Returns the path by which most of the calls in between went.
std::string_view path_between(const Traffic& before, const Traffic& after) {
  std::string_view path;
  std::uint64_t most = 0;
  for (std::size_t i = 0; i < after.calls.size(); ++i) {
    const std::uint64_t calls = after.calls[i] - before.calls[i];
    if (calls <= most) continue;
    most = calls;
    path = fcclMetricsPathName(static_cast<int>(i));
  }
  return path;
}

// Returns how many bytes the buffers miss their alignment by.
std::size_t shift_of(const Arguments& arguments, const std::vector<Case>& cases) {
  std::size_t widest = 1;
  for (const Case& each : cases) widest = std::max(widest, each.type->bytes);
  return static_cast<std::size_t>(arguments.unaligned_elements) * widest + (arguments.odd ? 1 : 0);
}

CallMemory allocate(const Run& run, int thread, Memory& memory, std::size_t shift) {
  auto made = CallMemory::make(memory, run.arguments.max_bytes, shift, run.arguments.rotates);
  require(run, thread, made);
  return *made;
}

}  // namespace

Meter::Meter(const Run& run, int thread, Library& library, Memory& memory)
    : run_(run),
      thread_(thread),
      library_(library),
      memory_(memory),
      call_memory_(allocate(run, thread, memory, shift_of(run.arguments, run.cases))) {}

std::size_t Meter::timed_calls() const {
  return static_cast<std::size_t>(run_.arguments.iterations) * static_cast<std::size_t>(run_.arguments.aggregated);
}

Buffers Meter::buffers(const Subject& subject, bool in_place, std::size_t part) const {
  return call_memory_.buffers(library_.fit(run_.collective, subject.layout), subject.type.bytes, subject.bytes, in_place, part);
}

Trial Meter::trial(const Subject& subject, std::uint64_t number) const {
  return {run_.collective, subject.type, subject.op, subject.samples, subject.layout, subject.place, number};
}

void Meter::start(const Subject& subject, const Buffers& buffers) {
  const Operation operation{.count = subject.layout.count,
                            .send = Source(buffers.send, subject.layout.send_count, subject.type.datatype),
                            .recv = Target(buffers.recv, subject.layout.recv_count, subject.type.datatype),
                            .op = subject.op.op,
                            .root = subject.place.root,
                            .stream = {},
                            .uneven = subject.layout.uneven};
  require(run_, thread_, library_.start(run_.collective, operation));
}

Traffic Meter::traffic() const {
  const auto told = library_.traffic(run_.collective);
  require(run_, thread_, told);
  return *told;
}

void Meter::finish() { require(run_, thread_, library_.finish()); }

void Meter::warm_up(const Subject& subject) {
  for (int call = 0; call < run_.arguments.warmup; ++call) start(subject, buffers(subject, false, 0));
  finish();
}

Measurement Meter::measure(const Subject& subject, bool in_place) {
  const Arguments& arguments = run_.arguments;
  Team& team = run_.team;
  const Parts parts = call_memory_.parts(subject.bytes, timed_calls(), checks());
  use_all_parts(subject, in_place, parts);
  if (checks()) prepare_last_calls(subject, in_place, parts);
  const Traffic before = traffic();
  team.barrier(thread_);
  const double queued_before = queued_seconds();
  // This call is untimed, and follows all steps that take ranks unequally long, so that ranks begin to be timed at the same
  // moment.
  start(subject, buffers(subject, in_place, 0));
  finish();
  const Timed timed = time_calls(subject, in_place, parts);
  const double queued = queued_seconds() - queued_before;
  const Traffic after = traffic();
  // The untimed call, too.
  const double copied = static_cast<double>(after.copied - before.copied) / static_cast<double>(parts.calls + 1);
  std::uint64_t wrong = checks() ? count_wrong_in_last_calls(subject, in_place, parts) : 0;
  // The check poisons memory after its buffers, so the results of the timed calls must have been checked before.
  wrong += count_wrong_in_checks(subject, in_place);
  const bool shows_error = arguments.ulp && rounds(trial(subject, 0));
  const double error = shows_error ? error_on_random_data(subject, in_place) : 0;
  const Combine average = combine_of(arguments.average);
  const auto all = team.combine(thread_, {{timed.until_done, average},
                                          {timed.until_issued, average},
                                          {queued, Combine::sum},
                                          {copied, Combine::mean},
                                          {static_cast<double>(wrong), Combine::sum},
                                          {error, Combine::maximum}});
  const double bandwidth = static_cast<double>(subject.bytes) / all[0];
  Measurement measured{.seconds = arguments.cpu_time ? all[1] : all[0],
                       .algorithm_bandwidth = bandwidth,
                       .bus_bandwidth = bandwidth * subject.bus_factor,
                       .path = path_between(before, after),
                       .copied = all[3],
                       .queued_seconds = all[2]};
  if (checks()) measured.wrong = static_cast<std::uint64_t>(all[4]);
  if (shows_error) measured.ulp = all[5];
  if (arguments.per_iteration || arguments.percentiles || !arguments.json_path.empty())
    measured.iterations = time_iterations(subject, in_place);
  if (arguments.skew > 0) measured.skew = time_skewed(subject, in_place);
  return measured;
}

// The parts of the last calls come first and get their inputs later: so a result of these calls cannot pass for one of the last
// calls. The others follow in the order of the timed calls, so that the parts used first have been out of the caches the
// longest.
void Meter::use_all_parts(const Subject& subject, bool in_place, const Parts& parts) {
  if (!run_.arguments.peers_map_buffers() || subject.bytes <= kMostInSlots) return;
  const std::size_t all = parts.rotating + parts.reserved;
  for (std::size_t used = 0; used < all; ++used) {
    start(subject, buffers(subject, in_place, (parts.rotating + used) % all));
    finish();
  }
}

// No rank's call may be on a GPU while another rank, which may share that GPU, still copies to it: the copies could wait for
// the call, and the call for the copies.
void Meter::start_together(const Subject& subject, const Buffers& buffers) {
  run_.team.barrier(thread_);
  start(subject, buffers);
  finish();
}

void Meter::start_blocking(const Subject& subject, const Buffers& buffers) {
  const Blocking blocking = run_.arguments.blocking;
  start(subject, buffers);
  if (blocking == Blocking::wait || blocking == Blocking::wait_and_barrier) finish();
  if (blocking == Blocking::wait_and_barrier) run_.team.barrier(thread_);
}

void Meter::refresh(const Subject& subject, bool in_place, const Parts& parts, std::size_t call) {
  const std::size_t bytes = subject.layout.send_count * subject.type.bytes;
  for (int repeat = 0; repeat < run_.arguments.aggregated; ++repeat)
    rewrite(buffers(subject, in_place, parts.part_of(call++)).send, bytes);
  run_.team.barrier(thread_);
}

Meter::Timed Meter::time_calls(const Subject& subject, bool in_place, const Parts& parts) {
  const Arguments& arguments = run_.arguments;
  const auto messages = static_cast<double>(parts.calls) * run_.collective.messages;
  const auto began = Clock::now();
  double untimed = 0;
  std::size_t call = 0;
  for (int iteration = 0; iteration < arguments.iterations; ++iteration) {
    if (arguments.fresh) {
      finish();
      const auto paused = Clock::now();
      refresh(subject, in_place, parts, call);
      untimed += seconds_since(paused);
    }
    for (int repeat = 0; repeat < arguments.aggregated; ++repeat)
      start_blocking(subject, buffers(subject, in_place, parts.part_of(call++)));
    if (arguments.blocking == Blocking::untimed_barrier) {
      finish();
      const auto paused = Clock::now();
      run_.team.barrier(thread_);
      untimed += seconds_since(paused);
    }
  }
  const double issued = seconds_since(began) - untimed;
  finish();
  return {.until_done = (seconds_since(began) - untimed) / messages, .until_issued = issued / messages};
}

Iterations Meter::time_iterations(const Subject& subject, bool in_place) {
  const Arguments& arguments = run_.arguments;
  const Parts parts = call_memory_.parts(subject.bytes, timed_calls(), false);
  std::vector<double> own;
  own.reserve(static_cast<std::size_t>(arguments.iterations));
  std::size_t call = 0;
  for (int iteration = 0; iteration < arguments.iterations; ++iteration) {
    if (arguments.fresh) refresh(subject, in_place, parts, call);
    const auto began = Clock::now();
    for (int repeat = 0; repeat < arguments.aggregated; ++repeat)
      start_blocking(subject, buffers(subject, in_place, parts.part_of(call++)));
    finish();
    own.push_back(seconds_since(began) / (arguments.aggregated * run_.collective.messages));
    if (arguments.blocking == Blocking::untimed_barrier) run_.team.barrier(thread_);
  }
  Iterations found{
      .statistics = {}, .skipped = arguments.skipped, .times = {}, .process_times = run_.team.process_maxima(thread_, own)};
  found.times = found.process_times.front();
  for (const auto& times : found.process_times) {
    for (std::size_t i = 0; i < times.size(); ++i) found.times[i] = std::max(found.times[i], times[i]);
  }
  found.statistics = statistics_of({found.times.begin() + arguments.skipped, found.times.end()});
  return found;
}

std::vector<double> Meter::maxima(const std::vector<double>& own) {
  const auto& found = run_.team.process_maxima(thread_, own);
  std::vector<double> greatest = found.front();
  for (const auto& each : found) {
    for (std::size_t i = 0; i < greatest.size(); ++i) greatest[i] = std::max(greatest[i], each[i]);
  }
  return greatest;
}

// The delay ends before the call's own clock is read, so no time includes it. Other ranks may want the processor in the delay.
Skew Meter::time_skewed(const Subject& subject, bool in_place) {
  const Arguments& arguments = run_.arguments;
  const auto iterations = static_cast<std::size_t>(arguments.iterations);
  const Parts parts = call_memory_.parts(subject.bytes, iterations, false);
  Arrivals own;
  own.delays.reserve(iterations);
  own.calls.reserve(iterations);
  for (std::size_t call = 0; call < iterations; ++call) {
    const double delay = drawn_delay(subject.place.rank, static_cast<int>(call), arguments.skew * 1e-6);
    const Buffers used = buffers(subject, in_place, parts.part_of(call));
    run_.team.barrier(thread_);
    const auto left = Clock::now();
    while (seconds_since(left) < delay) std::this_thread::yield();
    const auto arrived = Clock::now();
    start(subject, used);
    finish();
    own.calls.push_back(seconds_since(arrived));
    own.delays.push_back(std::chrono::duration<double>(arrived - left).count());
  }
  std::vector<double> negated;
  negated.reserve(iterations);
  for (const double delay : own.delays) negated.push_back(-delay);
  const std::vector<double> latest = maxima(own.delays);
  std::vector<double> earliest = maxima(negated);
  for (double& delay : earliest) delay = -delay;
  return skew_of(earliest, latest, maxima(calls_as_last(own, latest)));
}

template <class Fill>
void Meter::write(std::byte* at, std::size_t bytes, Fill fill) {
  fill(memory_.draft(at, bytes));
  require(run_, thread_, memory_.put(at, bytes));
}

void Meter::poison_result(std::byte* at, std::size_t bytes) {
  write(at, bytes, [bytes](std::byte* draft) { poison(draft, bytes); });
}

void Meter::fill(const Trial& trial, std::byte* send) {
  write(send, trial.layout.send_count * trial.type.bytes, [&trial](std::byte* draft) { fill_input(trial, draft); });
}

const std::byte* Meter::look(const std::byte* at, std::size_t bytes) {
  const auto seen = memory_.look(at, bytes);
  require(run_, thread_, seen);
  return *seen;
}

void Meter::prepare_last_calls(const Subject& subject, bool in_place, const Parts& parts) {
  for (std::size_t i = 0; i < parts.reserved; ++i) {
    const auto [send, recv] = buffers(subject, in_place, parts.rotating + i);
    poison_result(recv, subject.layout.recv_count * subject.type.bytes);
    fill(trial(subject, ++last_trial_), send);
  }
}

std::uint64_t Meter::count_wrong_in_last_calls(const Subject& subject, bool in_place, const Parts& parts) {
  std::uint64_t wrong = 0;
  for (std::size_t i = 0; i < parts.reserved; ++i)
    wrong += count(trial(subject, last_trial_ - parts.reserved + 1 + i), buffers(subject, in_place, parts.rotating + i).recv);
  return wrong;
}

std::uint64_t Meter::count_wrong_in_checks(const Subject& subject, bool in_place) {
  const Buffers used = buffers(subject, in_place, 0);
  std::byte* guard = end_of(used, library_.fit(run_.collective, subject.layout), subject.type.bytes, in_place);
  std::uint64_t wrong = 0;
  for (int check = 0; check < run_.arguments.checks; ++check) {
    const Trial checked = trial(subject, ++last_trial_);
    poison_result(guard, CallMemory::kGuardBytes);
    poison_result(used.recv, subject.layout.recv_count * subject.type.bytes);
    fill(checked, used.send);
    start_together(subject, used);
    wrong += count(checked, used.recv) + count_overwritten(guard);
  }
  return wrong;
}

std::uint64_t Meter::count(const Trial& trial, const std::byte* recv) {
  const std::uint64_t wrong = count_wrong(trial, look(recv, trial.layout.recv_count * trial.type.bytes));
  if (wrong > 0) ++bad_checks_;
  return wrong;
}

std::uint64_t Meter::count_overwritten(const std::byte* guard) {
  const std::uint64_t wrong = fccl::perf::count_overwritten(look(guard, CallMemory::kGuardBytes), CallMemory::kGuardBytes);
  if (wrong > 0) ++bad_checks_;
  return wrong;
}

double Meter::error_on_random_data(const Subject& subject, bool in_place) {
  const Buffers used = buffers(subject, in_place, 0);
  const Trial random = trial(subject, ++last_trial_);
  poison_result(used.recv, subject.layout.recv_count * subject.type.bytes);
  write(used.send, subject.layout.send_count * subject.type.bytes, [&random](std::byte* draft) { fill_random(random, draft); });
  start_together(subject, used);
  return largest_error(random, look(used.recv, subject.layout.recv_count * subject.type.bytes));
}

}  // namespace fccl::perf
