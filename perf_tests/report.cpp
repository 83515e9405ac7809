// Prints the table of nccl-tests; the format strings are its own.
#include "report.h"

#include <cmath>
#include <ctime>

namespace fccl::perf {
namespace {

// Above it a table is one of the machine's other work.
constexpr double kMostQueuedPercent = 10;
constexpr char kTimeFormat[] = "%Y-%m-%d %H:%M:%S";

const char* blocking_text(Blocking blocking) {
  switch (blocking) {
    case Blocking::wait_and_barrier:
      return "wait and barrier after each inner iteration (-m) ";
    case Blocking::wait:
      return "wait after each inner iteration (-m), no barrier ";
    default:
      return "wait and barrier after each outer iteration (-n); time excludes barrier ";
  }
}

}  // namespace

std::string fixed_width(double value, int width) {
  char text[64];
  for (const int decimals : {2, 1, 0}) {
    const int length = std::snprintf(text, sizeof text, "%*.*f", width, decimals, value);
    if (length <= width) return text;
  }
  std::snprintf(text, sizeof text, "%*.*e", width, width >= 7 ? 1 : 0, value);
  return text;
}

std::string time_now() {
  char text[64];
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  return std::string(text, std::strftime(text, sizeof text, kTimeFormat, &local));
}

std::string memory_text(double bytes) {
  constexpr const char* kUnits[] = {"B", "KB", "MB", "GB"};
  int unit = 0;
  for (; unit < 3 && std::fabs(bytes) >= 1024; ++unit) bytes /= 1024;
  char text[64];
  std::snprintf(text, sizeof text, "%.*f %s", std::fabs(bytes) < 10 ? 2 : std::fabs(bytes) < 100 ? 1 : 0, bytes, kUnits[unit]);
  return text;
}

std::string text_of(const fcclMemUsage_t& usage) {
  const auto text = [](std::size_t bytes) { return memory_text(static_cast<double>(bytes)); };
  return "Allocated " + text(usage.allocated) + " | Most " + text(usage.mostAllocated) + " | Filled " + text(usage.filled) +
         " | Addresses " + text(usage.reserved);
}

std::string text_of_slots(const fcclMemUsage_t& usage) {
  return "Gather " + memory_text(static_cast<double>(usage.gatherSlots)) + " | Pair " +
         memory_text(static_cast<double>(usage.pairSlots));
}

const char* kinds_of_ranks(const Beginning& beginning) {
  const int threads = beginning.arguments.ranks_per_process();
  if (threads == 1) return "processes";
  return static_cast<std::size_t>(threads) == beginning.ranks.size() ? "threads" : "threads of processes";
}

void Table::begin(const Beginning& beginning) {
  calls_ = static_cast<double>(beginning.ranks.size()) * arguments_.iterations * arguments_.aggregated;
  int library = 0;
  static_cast<void>(fcclGetVersion(&library));
  std::fprintf(out_, "# fccl-tests version %d.%d.%d fccl-headers=%d fccl-library=%d\n", FCCL_MAJOR, FCCL_MINOR, FCCL_PATCH,
               FCCL_VERSION_CODE, library);
  std::fprintf(out_, "# Collective test starting: %s\n", program_.c_str());
  const bool by_factor = arguments_.step_factor > 1;
  std::fprintf(
      out_,
      "# nThread %d nGpus %d minBytes %ld maxBytes %ld step: %ld(%s) warmup iters: %d iters: %d agg iters: %d validation: %d "
      "graph: %d unalign: %d\n",
      arguments_.threads, arguments_.gpus_per_thread(), static_cast<long>(arguments_.min_bytes),
      static_cast<long>(arguments_.max_bytes),
      by_factor ? static_cast<long>(arguments_.step_factor) : static_cast<long>(arguments_.step_bytes),
      by_factor ? "factor" : "bytes", arguments_.warmup, arguments_.iterations, arguments_.aggregated, arguments_.checks, 0,
      arguments_.unaligned_elements);
  if (!beginning.library.empty()) std::fprintf(out_, "# Measured: %s, not FCCL\n", beginning.library.c_str());
  for (const std::string& name : beginning.left_out) std::fprintf(out_, "# Left out, it has none: %s\n", name.c_str());
  if (arguments_.uses_gpus()) {
    std::fprintf(out_, "# CUDA memory, path %s: at most %d ranks per GPU, as %s\n", beginning.cuda_path.c_str(),
                 ranks_per_gpu(beginning.ranks), kinds_of_ranks(beginning));
    if (arguments_.null_stream()) std::fprintf(out_, "# Calls queue on the default stream\n");
  } else if (!arguments_.null_stream()) {
    std::fprintf(out_, "# Calls queue on a host stream\n");
  }
  if (arguments_.uneven) std::fprintf(out_, "# Counts of blocks: %s\n", std::string(name_of(*arguments_.uneven)).c_str());
  if (arguments_.odd) std::fprintf(out_, "# Odd counts at odd addresses\n");
  if (arguments_.fresh) std::fprintf(out_, "# Inputs are freshly written\n");
  if (!arguments_.rotates) std::fprintf(out_, "# Buffers do not rotate\n");
  if (beginning.ranks.size() == 1)
    std::fprintf(out_, "# One rank: no byte goes to another one; start more with -t or by mpirun\n");
  if (arguments_.skew > 0)
    std::fprintf(out_, "# Skew: in one more run ranks come to each call up to %d us later than they could\n", arguments_.skew);
  if (arguments_.blocking != Blocking::none) std::fprintf(out_, "# Blocking Enabled: %s\n", blocking_text(arguments_.blocking));
  if (arguments_.per_iteration) {
    std::fprintf(out_, "# Per-Iteration Report: steady clock, in a second run; i_* uses max over process rows");
    if (arguments_.skipped > 0) std::fprintf(out_, "; summary skips first %d iterations", arguments_.skipped);
    std::fprintf(out_, " \n");
  }
  if (arguments_.parallel_init)
    std::fprintf(out_, "# Parallel Init Enabled: threads call into fcclCommInitRank concurrently \n");
  std::fprintf(out_, "#\n# Using devices\n");
  for (const RankInfo& info : beginning.ranks)
    std::fprintf(out_, "#  Rank %2d Group %2d Pid %6d on %10s device %2d [%s] %s\n", info.rank, info.group, info.process_id,
                 info.host, info.device.ordinal, info.device.place().c_str(), info.device.name);
}

void Table::reduced_max_bytes(std::size_t bytes) {
  std::fprintf(out_, "#\n# Reducing maxBytes to %ld due to memory limitation\n", static_cast<long>(bytes));
}

void Table::header() {
  std::fprintf(out_, "#\n# %10s  %12s  %8s  %6s  %6s%s", "", "", "", "", "",
               arguments_.per_iteration
                   ? "              out-of-place (+ per-iteration)                                in-place (+ per-iteration)\n"
                   : "           out-of-place                       in-place          \n");
  titles(false);
  titles(true);
}

void Table::titles(bool units) {
  const auto text = [&](const char* title, const char* unit) { return units ? unit : title; };
  std::fprintf(out_, "# %10s  %12s  %8s  %6s  %6s", text("size", "(B)"), text("count", "(elements)"), text("type", ""),
               text("redop", ""), text("root", ""));
  for (int side = 0; side < 2; ++side) {
    std::fprintf(out_, "  %7s  %6s  %6s  %6s", text(arguments_.cpu_time ? "cputime" : "time", "(us)"), text("algbw", "(GB/s)"),
                 text("busbw", "(GB/s)"), text("#wrong", ""));
    if (arguments_.per_iteration)
      std::fprintf(out_, "  %7s  %7s  %7s  %7s", text("i_min", "(us)"), text("i_max", "(us)"), text("i_p99", "(us)"),
                   text("i_cv%", "(%)"));
    if (arguments_.percentiles) std::fprintf(out_, "  %7s  %7s", text("p50", "(us)"), text("p99", "(us)"));
    if (arguments_.ulp) std::fprintf(out_, "  %6s", text("ulp", ""));
    if (arguments_.skew > 0) std::fprintf(out_, "  %7s  %7s", text("apart", "(us)"), text("last", "(us)"));
  }
  std::fprintf(out_, " %*s\n", arguments_.timestamps ? 19 : 0, arguments_.timestamps ? text("timestamp", kTimeFormat) : "");
}

void Table::row(const Row& row) {
  std::fprintf(out_, "%12li  %12li  %8.*s  %6.*s  %6i", static_cast<long>(row.bytes), static_cast<long>(row.count),
               static_cast<int>(row.type.size()), row.type.data(), static_cast<int>(row.op.size()), row.op.data(), row.root);
  measurement(row.out_of_place);
  if (row.in_place)
    measurement(*row.in_place);
  else
    no_measurement();
  if (arguments_.timestamps) std::fprintf(out_, "%21s", time_now().c_str());
  std::fprintf(out_, "\n");
  std::fflush(out_);
  mean_.add(row);
  queued_.add(row, calls_);
  rounds_to_nothing_ = rounds_to_nothing_ || (row.bytes == 0 && arguments_.min_bytes > 0 && !arguments_.odd);
}

void Table::measurement(const Measurement& measurement) {
  const auto print = [&](double value, int width) { std::fprintf(out_, "  %s", fixed_width(value, width).c_str()); };
  print(measurement.seconds * 1e6, 7);
  print(measurement.algorithm_bandwidth / 1e9, 6);
  print(measurement.bus_bandwidth / 1e9, 6);
  if (measurement.wrong) {
    std::fprintf(out_, "  %6g", static_cast<double>(*measurement.wrong));
  } else {
    std::fprintf(out_, "    N/A");
  }
  const Statistics statistics = measurement.iterations ? measurement.iterations->statistics : Statistics{};
  if (arguments_.per_iteration) {
    for (const double seconds : {statistics.minimum, statistics.maximum, statistics.p99}) print(seconds * 1e6, 7);
    print(statistics.variation_percent(), 7);
  }
  if (arguments_.percentiles) {
    print(statistics.p50 * 1e6, 7);
    print(statistics.p99 * 1e6, 7);
  }
  if (arguments_.ulp && measurement.ulp) {
    print(*measurement.ulp, 6);
  } else if (arguments_.ulp) {
    std::fprintf(out_, "     N/A");
  }
  if (arguments_.skew > 0) {
    const Skew skew = measurement.skew.value_or(Skew{});
    for (const double seconds : {skew.apart, skew.last}) print(seconds * 1e6, 7);
  }
}

// Prints as many columns, each as wide as its title.
void Table::no_measurement() {
  const auto print = [&](int width, int columns) {
    for (int i = 0; i < columns; ++i) std::fprintf(out_, "  %*s", width, "N/A");
  };
  print(7, 1);
  print(6, 3);
  if (arguments_.per_iteration) print(7, 4);
  if (arguments_.percentiles) print(7, 2);
  if (arguments_.ulp) print(6, 1);
  if (arguments_.skew > 0) print(7, 2);
}

void Table::end(const Ending& ending) {
  const char* reached = !ending.min_bandwidth ? "" : mean_.reaches(ending.min_bandwidth) ? "OK" : "FAILED";
  std::fprintf(out_, "# %-20s : %d %s\n", "Out of bounds values", static_cast<int>(ending.bad_checks),
               ending.bad_checks == 0 ? "OK" : "FAILED");
  std::fprintf(out_, "# %-20s : %g %s\n", "Avg bus bandwidth", mean_.value(), reached);
  if (queued_.percent() > kMostQueuedPercent && !arguments_.cpu_time)
    std::fprintf(out_, "# %-20s : %.0f %% of the ranks' time; measure again on a machine that does nothing else\n",
                 "Waits for processors", queued_.percent());
  if (rounds_to_nothing_)
    std::fprintf(out_, "# %-20s : blocks are rounded down to a multiple of 16 bytes, as in nccl-tests; --odd rounds none\n",
                 "Size 0");
  std::fprintf(out_, "#\n# Collective test concluded: %s\n", program_.c_str());
  if (!ending.memory.empty()) std::fprintf(out_, "# %-20s : %s\n", "Host memory usage", ending.memory.c_str());
  if (!ending.arena.empty()) std::fprintf(out_, "# %-20s : %s\n", "Arena", ending.arena.c_str());
  if (!ending.slots.empty()) std::fprintf(out_, "# %-20s : %s\n", "CUDA slots", ending.slots.c_str());
  for (const std::string& line : ending.init) std::fprintf(out_, "# %-20s : %s\n", "Init", line.c_str());
  std::fprintf(out_, "#\n\n");
  std::fflush(out_);
}

void Table::error(std::string_view message) {
  std::fprintf(out_, "# error: %.*s\n", static_cast<int>(message.size()), message.data());
  std::fflush(out_);
}

}  // namespace fccl::perf
