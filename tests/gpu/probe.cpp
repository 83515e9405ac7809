// Runs the cases of a probe one after the other, within the time that it is given.
#include "probe.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string_view>

namespace fccl::gpu {

namespace {

constexpr double kSeconds = 300;
constexpr double kOpeningSeconds = 60;

void print(int question, std::string_view name, const Row& row) {
  std::puts(to_json(question, name, row).c_str());
  std::fflush(stdout);
}

// The rows of one case; true if nothing in it was wrong or failed.
bool run_case(const Question& question, const Case& each, double seconds_left) {
  bool well = true;
  const auto hear = [&](const Row& row) {
    well = well && row.verdict != Verdict::wrong && row.verdict != Verdict::failed;
    print(question.number, each.name, row);
  };
  const auto part = [&](Rank& rank) {
    if (question.open) question.open();
    each.part(rank);
  };
  const TeamEnd end = run_team(each.ranks, std::min(each.seconds, seconds_left), part, hear);
  if (end.outcome == Outcome::failed) hear(failed("the whole case", end.why));
  if (end.outcome == Outcome::unsupported) hear(unsupported("the whole case", end.why));
  return well;
}

int run_all(const Question& question, const std::vector<Case>& cases, double seconds) {
  const Deadline deadline = Deadline::in(seconds);
  const TeamEnd gpu = run_team(1, kOpeningSeconds, [&](Rank&) { question.look_for_gpu(); }, [](const Row&) {});
  if (gpu.outcome == Outcome::unsupported) {
    print(question.number, "", {"nothing was run", Verdict::not_run, std::nullopt, "", gpu.why});
    return kNoGpu;
  }
  if (gpu.outcome == Outcome::failed) {
    print(question.number, "", failed("opening the GPU", gpu.why));
    return kSomethingWrong;
  }
  bool well = true;
  for (const Case& each : cases) {
    if (deadline.has_passed()) {
      print(question.number, each.name, {"the whole case", Verdict::not_run, std::nullopt, "", "the probe's time was over"});
      well = false;
    } else if (!run_case(question, each, deadline.seconds_left())) {
      well = false;
    }
  }
  return well ? kAllWell : kSomethingWrong;
}

}  // namespace

int run_probe(const Question& question, const std::vector<Case>& cases, int argc, char** argv) {
  double seconds = kSeconds;
  if (argc == 3 && std::strcmp(argv[1], "--seconds") == 0) seconds = std::atof(argv[2]);
  if ((argc != 1 && argc != 3) || seconds <= 0) {
    std::fprintf(stderr, "usage: %s [--seconds N]\n", argv[0]);
    return kWrongUse;
  }
  // A kernel that is loaded at its first launch would wait for the kernels that run, some of which wait for it.
  setenv("CUDA_MODULE_LOADING", "EAGER", 1);
  try {
    return run_all(question, cases, seconds);
  } catch (const std::exception& error) {
    print(question.number, "", failed("the probe itself", error.what()));
    return kSomethingWrong;
  }
}

}  // namespace fccl::gpu
