// Prints the table of nccl-tests; the format strings are its own.
#include "report.h"

namespace fccl::perf {

std::string fixed_width(double value, int width) {
  char text[64];
  for (const int decimals : {2, 1, 0}) {
    const int length = std::snprintf(text, sizeof text, "%*.*f", width, decimals, value);
    if (length <= width) return text;
  }
  std::snprintf(text, sizeof text, "%*.*e", width, width >= 7 ? 1 : 0, value);
  return text;
}

void Report::begin(const Arguments& arguments, const std::vector<RankInfo>& ranks) {
  int library = 0;
  static_cast<void>(fcclGetVersion(&library));
  std::fprintf(out_, "# fccl-tests version %d.%d.%d fccl-headers=%d fccl-library=%d\n", FCCL_MAJOR, FCCL_MINOR, FCCL_PATCH,
               FCCL_VERSION_CODE, library);
  std::fprintf(out_, "# Collective test starting: %s\n", program_.c_str());
  const bool by_factor = arguments.step_factor > 1;
  std::fprintf(
      out_,
      "# nThread %d nGpus %d minBytes %ld maxBytes %ld step: %ld(%s) warmup iters: %d iters: %d agg iters: %d validation: %d "
      "graph: %d unalign: %d\n",
      arguments.threads, 1, static_cast<long>(arguments.min_bytes), static_cast<long>(arguments.max_bytes),
      by_factor ? static_cast<long>(arguments.step_factor) : static_cast<long>(arguments.step_bytes),
      by_factor ? "factor" : "bytes", arguments.warmup, arguments.iterations, arguments.aggregated, arguments.checks, 0,
      arguments.unaligned_elements);
  if (!arguments.null_stream) std::fprintf(out_, "# Calls queue on a host stream\n");
  if (arguments.blocking != Blocking::none)
    std::fprintf(out_, "# Blocking Enabled: mode %d\n", static_cast<int>(arguments.blocking));
  std::fprintf(out_, "#\n# Using devices\n");
  for (const RankInfo& info : ranks)
    std::fprintf(out_, "#  Rank %2d Group %2d Pid %6d on %10s device %2d [%s] %s\n", info.rank, 0, info.process_id, info.host,
                 -1, "host memory", info.processor);
}

void Report::reduced_max_bytes(std::size_t bytes) {
  std::fprintf(out_, "#\n# Reducing maxBytes to %ld due to memory limitation\n", static_cast<long>(bytes));
}

void Report::header() {
  constexpr char kFormat[] = "# %10s  %12s  %8s  %6s  %6s  %7s  %6s  %6s  %6s  %7s  %6s  %6s  %6s %*s\n";
  std::fprintf(out_, "#\n# %10s  %12s  %8s  %6s  %6s           out-of-place                       in-place          \n", "", "",
               "", "", "");
  std::fprintf(out_, kFormat, "size", "count", "type", "redop", "root", "time", "algbw", "busbw", "#wrong", "time", "algbw",
               "busbw", "#wrong", 0, "");
  std::fprintf(out_, kFormat, "(B)", "(elements)", "", "", "", "(us)", "(GB/s)", "(GB/s)", "", "(us)", "(GB/s)", "(GB/s)", "",
               0, "");
}

void Report::row(const Row& row) {
  std::fprintf(out_, "%12li  %12li  %8.*s  %6.*s  %6i", static_cast<long>(row.bytes), static_cast<long>(row.count),
               static_cast<int>(row.type.size()), row.type.data(), static_cast<int>(row.op.size()), row.op.data(), row.root);
  measurement(row.out_of_place);
  measurement(row.in_place);
  std::fprintf(out_, "\n");
  std::fflush(out_);
}

void Report::measurement(const Measurement& measurement) {
  const std::string time = fixed_width(measurement.seconds * 1e6, 7);
  const std::string algorithm = fixed_width(measurement.algorithm_bandwidth / 1e9, 6);
  const std::string bus = fixed_width(measurement.bus_bandwidth / 1e9, 6);
  std::fprintf(out_, "  %7s  %6s  %6s", time.c_str(), algorithm.c_str(), bus.c_str());
  if (measurement.wrong) {
    std::fprintf(out_, "  %6g", static_cast<double>(*measurement.wrong));
  } else {
    std::fprintf(out_, "    N/A");
  }
  bus_bandwidth_sum_ += measurement.bus_bandwidth / 1e9;
  ++measurements_;
}

void Report::end(std::uint64_t bad_checks) {
  const double mean = measurements_ == 0 ? 0 : bus_bandwidth_sum_ / static_cast<double>(measurements_);
  std::fprintf(out_, "# %-20s : %d %s\n", "Out of bounds values", static_cast<int>(bad_checks),
               bad_checks == 0 ? "OK" : "FAILED");
  std::fprintf(out_, "# %-20s : %g %s\n", "Avg bus bandwidth", mean, "");
  std::fprintf(out_, "#\n# Collective test concluded: %s\n#\n\n", program_.c_str());
  std::fflush(out_);
}

}  // namespace fccl::perf
