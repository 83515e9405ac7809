// Times calls of forced plans, so that each call's parts are known, and prints the costs that explain the times.
#include "calibrate.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "fit.h"
#include "statistics.h"

namespace fccl::perf {
namespace {

using Clock = std::chrono::steady_clock;

// The library cuts a block into pieces of at least this size.
constexpr std::size_t kPieceBytes = 64;

// The settings under which a communicator is joined, so that its calls use this plan.
struct Plan {
  const char* algorithm;
  const char* costs;
  int slices;
};

constexpr std::array kPlans{Plan{"pairwise", kOneSlice, 1}, Plan{"pairwise", kManySlices, kMostSlices},
                            Plan{"chain", kManySlices, kMostSlices}};
enum PlanIndex : std::size_t { kOneSlicePlan, kManySlicesPlan, kChainPlan };

enum class Kind { all_gather, reduce_scatter, broadcast };

struct Probe {
  PlanIndex plan;
  Kind kind;
  std::size_t bytes;  // one rank's block, or the broadcast buffer

  std::size_t larger_buffer(const Hosts& hosts) const {
    return kind == Kind::broadcast ? bytes : bytes * static_cast<std::size_t>(hosts.ranks);
  }
};

Load load_of(const Probe& probe, const Hosts& hosts) {
  const auto bytes = static_cast<double>(probe.bytes);
  const int slices = kPlans[probe.plan].slices;
  if (probe.kind == Kind::broadcast) return broadcast_load(hosts, bytes, slices);
  return probe.kind == Kind::all_gather ? all_gather_load(hosts, bytes, slices) : reduce_scatter_load(hosts, bytes, slices);
}

// Slices are equal only if pieces are whole.
std::size_t whole_pieces(std::size_t bytes, int parts) {
  const std::size_t unit = kPieceBytes * kMostSlices * static_cast<std::size_t>(parts);
  return (bytes + unit - 1) / unit * unit;
}

// Short blocks in one slice show latency and the work done in turn; short blocks in many slices show the cost of a message;
// long blocks show which of the wire and the host is slower. A Broadcast uses the two in another proportion than the others.
std::vector<Probe> probes_on(const Hosts& hosts) {
  std::vector<Probe> probes;
  for (const Kind kind : {Kind::all_gather, Kind::reduce_scatter}) {
    for (const std::size_t block : {4 << 10, 16 << 10, 64 << 10}) probes.push_back({kOneSlicePlan, kind, block});
    probes.push_back({kManySlicesPlan, kind, kPieceBytes * kMostSlices});
    for (const std::size_t total : {1 << 20, 4 << 20, 16 << 20})
      probes.push_back({kManySlicesPlan, kind, whole_pieces(total / static_cast<std::size_t>(hosts.ranks), 1)});
  }
  for (const std::size_t total : {1 << 20, 4 << 20})
    probes.push_back({kChainPlan, Kind::broadcast, whole_pieces(total, hosts.columns)});
  return probes;
}

using Ids = std::array<UniqueId, kPlans.size()>;

// One rank's communicators, one per plan, and its buffers. Made and used by one thread; ends all processes when a call fails.
class Calls {
 public:
  Calls(const Run& run, int thread, const Ids& ids) : run_(run), thread_(thread) {
    for (std::size_t plan = 0; plan < kPlans.size(); ++plan) communicators_.push_back(join(kPlans[plan], ids[plan]));
  }

  // Returns the numbers of hosts, ranks and NICs as the communicators count them.
  Hosts hosts() const {
    const auto counted = communicators_.front().hosts();
    require(run_, thread_, counted);
    return {.hosts = counted->hosts,
            .ranks = run_.team.ranks(),
            .most_ranks = counted->mostRanks,
            .columns = counted->fewestRanks,
            .rails = std::max(1, counted->rails)};
  }

  void make_buffers(std::size_t most_bytes) {
    send_.assign(most_bytes / sizeof(float), 1);
    recv_.assign(most_bytes / sizeof(float), 0);
  }

  // Returns the seconds of a call on the slowest rank, in the mean of several; equal on all ranks.
  double time(const Probe& probe) {
    constexpr std::size_t kShort = 1 << 20;
    const int calls = probe.bytes < kShort / static_cast<std::size_t>(run_.team.ranks()) ? 8 : 1;
    run_.team.barrier(thread_);
    // This call is untimed, so that all ranks begin to be timed at the same moment.
    call(probe);
    const auto began = Clock::now();
    for (int i = 0; i < calls; ++i) call(probe);
    const double seconds = std::chrono::duration<double>(Clock::now() - began).count();
    return run_.team.combine(thread_, {{seconds / calls, Combine::maximum}})[0];
  }

 private:
  Communicator join(const Plan& plan, const UniqueId& id) {
    if (thread_ == 0) {
      setenv("FCCL_COSTS", plan.costs, 1);
      setenv("FCCL_ALGORITHM", plan.algorithm, 1);
    }
    run_.team.barrier(thread_);
    Options options;
    options.memory = fcclMemoryCpu;
    if (run_.arguments.timeout_seconds > 0) options.timeout = std::chrono::seconds(run_.arguments.timeout_seconds);
    auto joined = Communicator::join(id, run_.team.rank(thread_), run_.team.ranks(), options);
    require(run_, thread_, joined);
    run_.team.barrier(thread_);
    return *std::move(joined);
  }

  void call(const Probe& probe) {
    Communicator& communicator = communicators_[probe.plan];
    const std::size_t count = probe.bytes / sizeof(float);
    const std::size_t all = count * static_cast<std::size_t>(run_.team.ranks());
    const auto send = [&](std::size_t elements) { return Source(send_.data(), elements, fcclFloat32); };
    const auto recv = [&](std::size_t elements) { return Target(recv_.data(), elements, fcclFloat32); };
    if (probe.kind == Kind::all_gather)
      require(run_, thread_, communicator.all_gather(send(count), recv(all)));
    else if (probe.kind == Kind::reduce_scatter)
      require(run_, thread_, communicator.reduce_scatter(send(all), recv(count), Op::sum));
    else
      require(run_, thread_, communicator.broadcast(send(count), recv(count), 0));
  }

  const Run& run_;
  const int thread_;
  std::vector<Communicator> communicators_;
  std::vector<float> send_;
  std::vector<float> recv_;
};

// The measured points, and the hosts between which they were measured; no points on a single host.
struct Measured {
  Hosts hosts;
  std::vector<Point> points;
};

// Measures as one rank. Each repetition goes over all probes, so that a temporary disturbance affects each probe a little.
Measured measure(const Run& run, int thread, const Ids& ids) {
  Calls calls(run, thread, ids);
  const Hosts hosts = calls.hosts();
  if (hosts.hosts < 2) return {hosts, {}};
  const std::vector<Probe> probes = probes_on(hosts);
  std::size_t most_bytes = 0;
  for (const Probe& probe : probes) most_bytes = std::max(most_bytes, probe.larger_buffer(hosts));
  calls.make_buffers(most_bytes);
  std::vector<std::vector<double>> seconds(probes.size());
  for (int repetition = 0; repetition < run.arguments.iterations; ++repetition)
    for (std::size_t i = 0; i < probes.size(); ++i) seconds[i].push_back(calls.time(probes[i]));
  std::vector<Point> points;
  points.reserve(probes.size());
  for (std::size_t i = 0; i < probes.size(); ++i) points.push_back({load_of(probes[i], hosts), statistics_of(seconds[i]).p50});
  return {hosts, points};
}

void print(const Measured& measured, int repetitions) {
  constexpr std::array kNames{"AllGather", "ReduceScatter", "Broadcast"};
  const auto& [hosts, points] = measured;
  const Costs costs = fit(points);
  const std::vector<Probe> probes = probes_on(hosts);
  std::printf("# costs of %d ranks on %d hosts, %d rail%s each; times are medians of %d\n", hosts.ranks, hosts.hosts,
              hosts.rails, hosts.rails == 1 ? "" : "s", repetitions);
  std::printf("#\n# %-13s %12s %-9s %6s %13s %13s %8s\n", "collective", "size (B)", "algorithm", "slices", "measured us",
              "predicted us", "error %");
  for (std::size_t i = 0; i < points.size(); ++i) {
    const Probe& probe = probes[i];
    std::printf("# %-13s %12zu %-9s %6d %13.1f %13.1f %8.1f\n", kNames[static_cast<std::size_t>(probe.kind)],
                probe.larger_buffer(hosts), kPlans[probe.plan].algorithm, points[i].load.slices, points[i].seconds * 1e6,
                predict(points[i].load, costs) * 1e6, error_percent(points[i], costs));
  }
  const double error = median_error_percent(points, costs);
  std::printf("#\n# median error: %.1f %%\n%s\n", error, text_of(costs, error).c_str());
}

}  // namespace

ExitCode calibrate(Run& run) {
  Ids ids;
  for (UniqueId& id : ids) {
    auto shared = run.team.share_id();
    require(run, 0, shared);
    id = *shared;
  }
  std::vector<std::thread> others;
  for (int thread = 1; thread < run.arguments.ranks_per_process(); ++thread)
    others.emplace_back([&, thread] { measure(run, thread, ids); });
  const Measured measured = measure(run, 0, ids);
  for (std::thread& other : others) other.join();
  const bool speaks = run.team.processes().process() == 0;
  if (speaks && measured.points.empty())
    std::fprintf(stderr,
                 "--calibrate measures what goes between hosts, but all %d ranks are on one: there is nothing to calibrate; "
                 "start ranks on two hosts or more\n",
                 measured.hosts.ranks);
  else if (speaks)
    print(measured, run.arguments.iterations);
  return measured.points.empty() ? ExitCode::usage : ExitCode::success;
}

}  // namespace fccl::perf
