// Reads the command line, meets the other processes, starts one thread per rank and turns their results into an exit status.
#include "runner.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <thread>
#include <vector>

#include "calibrate.h"
#include "environment.h"
#include "gpu/devices.h"
#include "sweep.h"

namespace fccl::perf {
namespace {

// The reason why a run cannot begin.
struct Refusal {
  ExitCode code;
  std::string text;
};

// Returns how far the sweep can go: each rank keeps a send and a recv buffer, each for two calls; on GPUs, half of the memory
// is also left free.
std::size_t affordable_bytes(const Arguments& arguments, const std::vector<RankInfo>& ranks) {
  std::size_t bytes = memory_per_rank(static_cast<int>(ranks.size()));
  const auto sharing = static_cast<std::size_t>(ranks_per_gpu(ranks));
  for (const RankInfo& rank : ranks) {
    if (sharing > 0) bytes = std::min(bytes, rank.device.bytes / 2 / sharing);
  }
  return std::min(arguments.max_bytes, std::max(bytes / 4, arguments.min_bytes));
}

// Opens the CSV file of the first process, if one is wanted. Every process returns the same status if it cannot be made.
Result<std::optional<CsvReport>> open_csv(const Arguments& arguments, const Processes& processes) {
  std::optional<CsvReport> opened;
  Error fault{fcclSuccess, ""};
  if (processes.process() == 0 && !arguments.csv_path.empty()) {
    auto made = CsvReport::open(arguments.csv_path);
    if (made)
      opened = *std::move(made);
    else
      fault = made.error();
  }
  const auto results = processes.all_gather(static_cast<int>(fault.code));
  if (results.front() != fcclSuccess) return fault.code == fcclSuccess ? Error{fcclInvalidArgument, ""} : fault;
  return opened;
}

// Returns the devices of the threads' buffers. Ends all processes if a GPU is asked for that cannot be used.
std::vector<DeviceInfo> devices_of(const Arguments& arguments, const Environment& environment, const Processes& processes) {
  if (!arguments.uses_gpus()) return std::vector(static_cast<std::size_t>(arguments.ranks_per_process()), this_processor());
  const auto chosen = choose_gpus(arguments, environment, processes);
  if (chosen) return *chosen;
  std::fprintf(stderr, "%s\n", chosen.error().message.c_str());
  processes.abort(chosen.error().code == fcclUnhandledCudaError ? ExitCode::cuda : ExitCode::usage);
}

// Returns why the library that replaces FCCL cannot be measured.
std::optional<Refusal> refusal_of_peer(const Arguments& arguments, const Team& team, const Cases& cases) {
  if (arguments.measures_fccl()) return std::nullopt;
  const FcclLauncher* launcher = team.processes().launcher();
  const std::string flag = arguments.measures_mpi ? "--peer mpi" : "--peer limit";
  if (arguments.measures_mpi && !launcher)
    return Refusal{ExitCode::usage, "--peer mpi measures the MPI whose mpirun starts the processes; start them by mpirun"};
  if (team.ranks() != team.processes().processes() * arguments.ranks_per_process())
    return Refusal{ExitCode::not_implemented, flag + " measures all processes together; unset FCCL_TESTS_SPLIT"};
  if (!cases.chosen.empty()) return std::nullopt;
  const std::string missing = cases.left_out.empty() ? "" : cases.left_out.front();
  if (arguments.measures_mpi)
    return Refusal{ExitCode::not_implemented, std::string(launcher->version()) + " has no such call: " + missing};
  return Refusal{ExitCode::not_implemented,
                 "--peer limit has loops for all_gather_perf, and for sums of float of reduce_scatter_perf and "
                 "all_reduce_perf; it has no such call: " +
                     missing};
}

std::optional<Refusal> refusal(const Arguments& arguments, const Collective& collective, const Team& team, const Cases& cases) {
  if (collective.wants_power_of_two && !std::has_single_bit(static_cast<unsigned>(team.ranks())))
    return Refusal{ExitCode::usage,
                   "ranks exchange with those whose numbers differ in one bit: start 1, 2, 4, 8 ... of them, not " +
                       std::to_string(team.ranks())};
  if (collective.wants_pairs && team.ranks() % 2 != 0)
    return Refusal{ExitCode::usage,
                   "each rank of the first half has a partner in the second half: start 2, 4, 6 ... of them, not " +
                       std::to_string(team.ranks())};
  if (arguments.uneven && !collective.is_uneven())
    return Refusal{ExitCode::usage,
                   "--uneven is for collectives whose blocks have counts of their own: all_gatherv_perf, "
                   "reduce_scatterv_perf, alltoallv_perf"};
  if (collective.rooted && arguments.root >= team.ranks())
    return Refusal{ExitCode::usage, "invalid value for -r: " + std::to_string(arguments.root) + "; there are " +
                                        std::to_string(team.ranks()) + " ranks"};
  if (arguments.calibrates && team.ranks() != team.processes().processes() * arguments.ranks_per_process())
    return Refusal{ExitCode::usage, "--calibrate measures all processes together; unset FCCL_TESTS_SPLIT"};
  return refusal_of_peer(arguments, team, cases);
}

// Returns the GB/s of FCCL_TESTS_MIN_BW.
std::optional<double> min_bandwidth(const Environment& environment) {
  if (!environment.min_bandwidth) return std::nullopt;
  return std::strtod(environment.min_bandwidth->c_str(), nullptr);
}

// The reports of the first process.
struct Reports {
  Table table;
  std::optional<JsonReport> json;
};

Ending run_ranks(const Run& run) {
  std::vector<std::thread> others;
  for (int thread = 1; thread < run.arguments.ranks_per_process(); ++thread)
    others.emplace_back([&run, thread] { Sweep(run, thread)(); });
  Sweep sweep(run, 0);
  Ending ending{.bad_checks = sweep()};
  const MemoryUse& use = sweep.memory_use();
  if (run.arguments.memory)
    ending.memory = "Initialization " + memory_text(use.joining) + " | User-Allocated " + memory_text(use.buffers) +
                    " | Collective " + memory_text(use.calls) + " | Total  " +
                    memory_text(use.joining + use.buffers + use.calls);
  if (run.arguments.memory && run.arguments.in_arena) ending.arena = sweep.arena_text();
  if (run.arguments.memory && run.arguments.uses_gpus()) ending.slots = sweep.slots_text();
  ending.init = sweep.init_lines();
  for (std::thread& other : others) other.join();
  return ending;
}

// Does the part that is the same on all processes once they have met.
ExitCode run_together(Run& run, const Beginning& beginning, std::size_t asked_bytes, const Environment& environment,
                      const std::vector<std::string>& command) {
  std::optional<Reports> reports;
  if (run.team.processes().process() == 0) {
    std::FILE* const out = run.arguments.prints_report() ? stderr : stdout;
    reports.emplace(Table(out, run.program, run.arguments), std::nullopt);
    run.table = &reports->table;
    if (!run.arguments.json_path.empty()) {
      run.json = &reports->json.emplace(run.arguments.json_path, out);
      run.json->begin(beginning, command, environment.about_run);
    }
    if (run.csv) std::fprintf(out, "# Writing CSV output to %s\n", run.csv->path().c_str());
    run.table->begin(beginning);
    if (run.arguments.max_bytes < asked_bytes) run.table->reduced_max_bytes(run.arguments.max_bytes);
    run.table->header();
  }
  if (run.arguments.measures_fccl()) {
    auto id = run.team.share_id();
    require(run, 0, id);
    run.id = *id;
  }
  Ending ending = run_ranks(run);
  ending.min_bandwidth = min_bandwidth(environment);
  if (run.table) run.table->end(ending);
  if (run.json) run.json->end(ending);
  if (run.csv && !run.csv->fault().empty()) {
    std::fprintf(stderr, "%s\n", run.csv->fault().c_str());
    return ExitCode::internal;
  }
  const bool fast_enough = !run.table || run.table->reaches(ending.min_bandwidth);
  return ending.bad_checks == 0 && fast_enough ? ExitCode::success : ExitCode::wrong_data;
}

int end(const Refusal& refusal) {
  std::fputs((refusal.text + "\n").c_str(), stderr);
  return static_cast<int>(refusal.code);
}

}  // namespace

int run(int argc, char** argv, const Collective& collective) {
  const Parsed parsed = parse_arguments(argc, argv);
  const Environment environment = read_environment();
  const auto choice = choose_launch(environment);
  if (!choice) return end({ExitCode::internal, choice.error().message});
  const auto processes = Processes::start(*choice, parsed.arguments && parsed.arguments->ranks_per_process() > 1);
  if (!processes) return end({ExitCode::internal, processes.error().message});
  if (!parsed.arguments) {
    if (processes->process() == 0) std::fputs(parsed.text.c_str(), parsed.exit_code == ExitCode::success ? stdout : stderr);
    return static_cast<int>(parsed.exit_code);
  }
  const auto group = group_of(environment, processes->process(), processes->processes());
  if (!group) return end({ExitCode::usage, group.error().message});

  Arguments arguments = *parsed.arguments;
  Team team(*processes, *group, arguments.ranks_per_process());
  const FcclLauncher* peer = arguments.measures_mpi ? processes->launcher() : nullptr;
  const Cases cases = cases_of(arguments, collective, peer);
  if (const auto refused = refusal(arguments, collective, team, cases))
    return processes->process() == 0 ? end(*refused) : static_cast<int>(refused->code);
  if (collective.is_uneven() && !arguments.uneven) arguments.uneven = Uneven::linear;

  const std::vector<DeviceInfo> devices = devices_of(arguments, environment, *processes);
  const std::vector<RankInfo> ranks = team.introduce(devices);
  arguments.max_bytes = affordable_bytes(arguments, ranks);
  const LoopChoice loops = arguments.measures_limit ? choose_loops(*processes, arguments) : LoopChoice{};
  const std::string library = arguments.measures_limit
                                  ? "the limit of loops over memory that all ranks map (" + loops.text() + ")"
                              : peer ? peer->version()
                                     : "";
  const Beginning beginning{arguments, ranks, library, cases.left_out, environment.cuda_path.value_or("auto")};
  Run shared{arguments, collective, cases.chosen, team, {}, std::filesystem::path(argv[0]).filename(), devices, loops};
  if (arguments.calibrates) return static_cast<int>(calibrate(shared));
  auto csv = open_csv(arguments, *processes);
  if (!csv)
    return csv.error().message.empty() ? static_cast<int>(ExitCode::usage) : end({ExitCode::usage, csv.error().message});
  if (*csv) shared.csv = &**csv;
  return static_cast<int>(run_together(shared, beginning, parsed.arguments->max_bytes, environment, {argv, argv + argc}));
}

}  // namespace fccl::perf
