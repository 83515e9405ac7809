// Reads the command line, starts one thread per rank of this process and turns what they found into an exit status.
#include "runner.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <thread>
#include <vector>

#include "sweep.h"

namespace fccl::perf {
namespace {

// How far the sweep can go: each rank keeps a send and a recv buffer.
std::size_t affordable_bytes(const Arguments& arguments, int ranks) {
  return std::min(arguments.max_bytes, std::max(memory_per_rank(ranks) / 2, arguments.min_bytes));
}

UniqueId make_id(const Mpi& mpi) {
  UniqueId id{};
  if (mpi.process() == 0) {
    auto made = unique_id();
    if (!made) {
      std::fprintf(stderr, "Test FCCL failure: %s\n", made.error().message.c_str());
      mpi.abort(exit_code_of(made.error().code));
    }
    id = *made;
  }
  mpi.share(id);
  return id;
}

std::uint64_t run_ranks(const Run& run) {
  std::vector<std::thread> others;
  for (int thread = 1; thread < run.arguments.threads; ++thread) others.emplace_back([&run, thread] { Sweep(run, thread)(); });
  const std::uint64_t bad_checks = Sweep(run, 0)();
  for (std::thread& other : others) other.join();
  return bad_checks;
}

}  // namespace

int run(int argc, char** argv, const Collective& collective) {
  const std::string program = std::filesystem::path(argv[0]).filename();
  Mpi mpi(argc, argv);
  Parsed parsed = parse_arguments(argc, argv);
  if (!parsed.arguments) {
    if (mpi.process() == 0) std::fputs(parsed.text.c_str(), parsed.exit_code == ExitCode::success ? stdout : stderr);
    return static_cast<int>(parsed.exit_code);
  }
  Arguments arguments = *parsed.arguments;
  Team team(mpi, arguments.threads);
  if (collective.rooted && arguments.root >= team.ranks()) {
    if (mpi.process() == 0)
      std::fprintf(stderr, "invalid value for -r: %d; there are %d ranks\n", arguments.root, team.ranks());
    return static_cast<int>(ExitCode::usage);
  }
  const std::size_t asked_bytes = arguments.max_bytes;
  arguments.max_bytes = affordable_bytes(arguments, team.ranks());

  std::optional<Report> report;
  const auto ranks = team.introduce();
  if (mpi.process() == 0) {
    report.emplace(stdout, program);
    report->begin(arguments, ranks);
    if (arguments.max_bytes < asked_bytes) report->reduced_max_bytes(arguments.max_bytes);
    report->header();
  }
  const std::uint64_t bad_checks = run_ranks({arguments, collective, team, make_id(mpi), report ? &*report : nullptr});
  if (report) report->end(bad_checks);
  return static_cast<int>(bad_checks == 0 ? ExitCode::success : ExitCode::wrong_data);
}

}  // namespace fccl::perf
