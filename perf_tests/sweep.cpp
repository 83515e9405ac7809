// Issues, times and checks the calls of one rank.
#include "sweep.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <source_location>
#include <span>

namespace fccl::perf {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kAlignment = 4096;

// Ends the run unless `result` is a success.
template <class T>
void require(const Run& run, const Result<T>& result, std::source_location where = std::source_location::current()) {
  if (result) return;
  char host[64] = "";
  gethostname(host, sizeof host - 1);
  const Error& error = result.error();
  std::fprintf(stderr, "%s: Test FCCL failure %s:%u '%s / %s'\n .. %s pid %d: Test failure %s:%u\n", host, where.file_name(),
               where.line(), fcclGetErrorString(error.code), error.message.c_str(), host, static_cast<int>(getpid()),
               where.file_name(), where.line());
  run.team.mpi().abort(exit_code_of(error.code));
}

Communicator join(const Run& run, int thread) {
  Options options;
  options.memory = fcclMemoryCpu;
  if (run.arguments.timeout_seconds > 0) options.timeout = std::chrono::seconds(run.arguments.timeout_seconds);
  auto communicator = Communicator::join(run.id, run.team.rank(thread), run.team.ranks(), options);
  require(run, communicator);
  return *std::move(communicator);
}

// The first aligned byte of `memory`.
std::byte* aligned(std::vector<std::byte>& memory) {
  void* start = memory.data();
  std::size_t space = memory.size();
  return static_cast<std::byte*>(std::align(kAlignment, 1, start, space));
}

std::size_t larger(const Layout& layout) { return std::max(layout.send_count, layout.recv_count); }

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

// Rows of `table` that a flag chose by name, or by "all".
template <class Row, class Keep>
std::vector<const Row*> rows_named(std::span<const Row> table, std::string_view name, Keep keep) {
  std::vector<const Row*> rows;
  for (const Row& row : table) {
    if (name == row.name || (name == "all" && keep(row))) rows.push_back(&row);
  }
  return rows;
}

}  // namespace

Sweep::Sweep(const Run& run, int thread) : run_(run), thread_(thread), communicator_(join(run, thread)) {
  if (!run.arguments.null_stream) {
    auto stream = Stream::create();
    require(run, stream);
    stream_.emplace(*std::move(stream));
  }
  // The widest element is 8 bytes.
  const std::size_t bytes =
      run.arguments.max_bytes + kAlignment + 8 * static_cast<std::size_t>(run.arguments.unaligned_elements);
  send_.resize(bytes);
  recv_.resize(bytes);
}

std::uint64_t Sweep::operator()() {
  for (int cycle = 0; run_.arguments.cycles == 0 || cycle < run_.arguments.cycles; ++cycle) run_cases();
  return static_cast<std::uint64_t>(run_.team.combine(thread_, static_cast<double>(bad_checks_), Combine::sum));
}

void Sweep::run_cases() {
  const Collective& collective = run_.collective;
  const auto types = rows_named(element_types(), run_.arguments.type,
                                [&](const ElementType& type) { return type.reducible || !collective.reduces; });
  auto ops = rows_named(operators(), run_.arguments.op, [](const Operator& op) { return op.available; });
  if (!collective.reduces) ops.resize(1);
  const int ranks = run_.team.ranks();
  const bool all_roots = collective.rooted && run_.arguments.root == -1;
  const int first_root = all_roots ? 0 : std::max(run_.arguments.root, 0);
  const int last_root = all_roots ? ranks - 1 : first_root;
  for (const ElementType* type : types) {
    for (const Operator* op : ops) {
      for (int root = first_root; root <= last_root; ++root)
        run_sizes({*type, *op, {.rank = run_.team.rank(thread_), .ranks = ranks, .root = root}});
    }
  }
}

void Sweep::run_sizes(const Case& chosen) {
  warm_up(chosen);
  const Arguments& arguments = run_.arguments;
  for (std::size_t bytes = arguments.min_bytes; bytes <= arguments.max_bytes; bytes = next_size(arguments, bytes)) {
    const Layout sizes = layout(chosen, bytes);
    const Measurement out_of_place = measure(chosen, sizes, false);
    const Measurement in_place = measure(chosen, sizes, true);
    if (run_.report && thread_ == 0) {
      run_.report->row({.bytes = larger(sizes) * chosen.type.bytes,
                        .count = sizes.count,
                        .type = chosen.type.name,
                        .op = run_.collective.reduces ? chosen.op.name : "none",
                        .root = run_.collective.rooted ? chosen.place.root : -1,
                        .out_of_place = out_of_place,
                        .in_place = in_place});
    }
    if (arguments.min_bytes == arguments.max_bytes) break;
  }
}

void Sweep::warm_up(const Case& chosen) {
  run_.team.barrier(thread_);
  const Arguments& arguments = run_.arguments;
  for (std::size_t bytes = std::max<std::size_t>(arguments.min_bytes, 1); bytes <= arguments.max_bytes; bytes *= 2) {
    const Layout sizes = layout(chosen, bytes);
    for (int call = 0; call < arguments.warmup; ++call)
      start(chosen, sizes, buffers(chosen, sizes, false, static_cast<std::size_t>(call)));
    finish();
  }
}

Layout Sweep::layout(const Case& chosen, std::size_t bytes) const {
  return run_.collective.layout(bytes / chosen.type.bytes, chosen.type.bytes, chosen.place);
}

Sweep::Buffers Sweep::buffers(const Case& chosen, const Layout& layout, bool in_place, std::size_t call) {
  const std::size_t bytes = chosen.type.bytes;
  const std::size_t stride = std::max<std::size_t>(larger(layout) * bytes, 1);
  const std::size_t parts = std::max<std::size_t>(run_.arguments.max_bytes / stride, 1);
  const std::size_t shift = call % parts * stride + static_cast<std::size_t>(run_.arguments.unaligned_elements) * bytes;
  std::byte* recv = aligned(recv_) + shift;
  if (!in_place) return {aligned(send_) + shift, recv};
  return {recv + layout.in_place_send * bytes, recv + layout.in_place_recv * bytes};
}

void Sweep::start(const Case& chosen, const Layout& layout, const Buffers& buffers) {
  const Operation operation{.send = Source(buffers.send, layout.send_count, chosen.type.datatype),
                            .recv = Target(buffers.recv, layout.recv_count, chosen.type.datatype),
                            .op = chosen.op.op,
                            .root = chosen.place.root,
                            .stream = stream_ ? StreamRef(*stream_) : StreamRef()};
  require(run_, run_.collective.start(communicator_, operation));
}

void Sweep::finish() {
  if (stream_) require(run_, stream_->synchronize());
}

Measurement Sweep::measure(const Case& chosen, const Layout& layout, bool in_place) {
  start(chosen, layout, buffers(chosen, layout, in_place, 0));
  finish();
  run_.team.barrier(thread_);
  const double seconds = run_.team.combine(thread_, time_calls(chosen, layout, in_place), combine_of(run_.arguments.average));
  const double bandwidth = static_cast<double>(larger(layout) * chosen.type.bytes) / seconds;
  Measurement measured{.seconds = seconds,
                       .algorithm_bandwidth = bandwidth,
                       .bus_bandwidth = bandwidth * run_.collective.bus_factor(chosen.place.ranks),
                       .wrong = {}};
  run_.team.barrier(thread_);
  if (run_.arguments.checks > 0) measured.wrong = count_wrong_in_checks(chosen, layout, in_place);
  return measured;
}

double Sweep::time_calls(const Case& chosen, const Layout& layout, bool in_place) {
  const Arguments& arguments = run_.arguments;
  const auto began = Clock::now();
  Clock::duration untimed{};
  std::size_t call = 0;
  for (int iteration = 0; iteration < arguments.iterations; ++iteration) {
    for (int repeat = 0; repeat < arguments.aggregated; ++repeat) {
      start(chosen, layout, buffers(chosen, layout, in_place, call++));
      if (arguments.blocking == Blocking::wait || arguments.blocking == Blocking::wait_and_barrier) finish();
      if (arguments.blocking == Blocking::wait_and_barrier) run_.team.barrier(thread_);
    }
    if (arguments.blocking == Blocking::untimed_barrier) {
      finish();
      const auto paused = Clock::now();
      run_.team.barrier(thread_);
      untimed += Clock::now() - paused;
    }
  }
  finish();
  const std::chrono::duration<double> timed = Clock::now() - began - untimed;
  return timed.count() / static_cast<double>(call);
}

std::uint64_t Sweep::count_wrong_in_checks(const Case& chosen, const Layout& layout, bool in_place) {
  const auto [send, recv] = buffers(chosen, layout, in_place, 0);
  std::uint64_t wrong = 0;
  for (int check = 0; check < run_.arguments.checks; ++check) {
    const Trial trial{run_.collective, chosen.type, chosen.op, layout, chosen.place, static_cast<std::uint64_t>(check)};
    poison(recv, layout.recv_count * chosen.type.bytes);
    fill_input(trial, send);
    start(chosen, layout, {send, recv});
    finish();
    const std::uint64_t found = count_wrong(trial, recv);
    if (found > 0) ++bad_checks_;
    wrong += found;
  }
  return static_cast<std::uint64_t>(run_.team.combine(thread_, static_cast<double>(wrong), Combine::sum));
}

}  // namespace fccl::perf
