// Reads the command line by the table of flags.
#include "arguments.h"

#include <getopt.h>

#include <algorithm>
#include <vector>

#include "flags.h"

namespace fccl::perf {
namespace {

constexpr char kSeeHelp[] = "; --help lists the options";

std::string line_of(const Flag& flag) {
  std::string line = "  [";
  if (flag.has_letter()) line += std::string("-") + static_cast<char>(flag.key) + ",";
  line += std::string("--") + flag.name;
  if (flag.value) line += std::string(" <") + flag.value + ">";
  return line + "] " + flag.text + "\n";
}

std::string usage_of(const char* program) {
  std::string text = std::string("USAGE: ") + program + "\n";
  std::string own = "FCCL's own, unknown to nccl-tests:\n";
  for (const Flag& flag : flags()) (flag.is_own() ? own : text) += line_of(flag);
  return text + own +
         "Environment: FCCL_TESTS_SPLIT, FCCL_TESTS_SPLIT_MASK, FCCL_TESTS_MIN_BW and FCCL_TESTS_DEVICE, or these as "
         "NCCL_TESTS_*;\nFCCL_TESTS_LAUNCHER=none|openmpi|mpich|intelmpi if who started the processes cannot be seen. "
         "docs/reference/perf_tests.md explains everything.\n";
}

Parsed refuse(ExitCode code, const std::string& text) { return {std::nullopt, code, text + "\n"}; }

Parsed refuse_value(const Flag& flag, Taken why, const char* text) {
  const std::string name = flag.has_letter() ? std::string("-") + static_cast<char>(flag.key) : std::string("--") + flag.name;
  if (why == Taken::impossible_here)
    return refuse(ExitCode::not_implemented, name + " " + text + " (--" + flag.name + ") means nothing here: " + flag.text +
                                                 "; leave it out or give " + flag.value);
  return refuse(why == Taken::bad_size ? ExitCode::bad_sizes : ExitCode::usage,
                "invalid value for " + name + ": " + text + "; it takes <" + flag.value + ">");
}

// Refuses combinations that cannot be run although each value is valid by itself.
Parsed check(const Arguments& arguments) {
  if (arguments.min_bytes > arguments.max_bytes)
    return refuse(ExitCode::bad_sizes, "invalid sizes for 'minbytes' and 'maxbytes': " + std::to_string(arguments.min_bytes) +
                                           " > " + std::to_string(arguments.max_bytes));
  if (arguments.min_bytes < arguments.max_bytes && next_size(arguments, arguments.min_bytes) == arguments.min_bytes)
    return refuse(ExitCode::bad_sizes,
                  "a sweep from " + std::to_string(arguments.min_bytes) + " bytes never ends with this -i or -f");
  if (arguments.skipped >= arguments.iterations || (arguments.skipped > 0 && !arguments.per_iteration))
    return refuse(ExitCode::usage, "-K " + std::to_string(arguments.skipped) +
                                       " needs -I 1 and more iterations than that (-n " + std::to_string(arguments.iterations) +
                                       ")");
  if (arguments.gpus > 1 && !arguments.uses_gpus())
    return refuse(ExitCode::not_implemented, "-g " + std::to_string(arguments.gpus) +
                                                 " (--ngpus) is for GPUs: give --device cuda, or -t for ranks as threads");
  if (arguments.measures_mpi && (arguments.ranks_per_process() > 1 || !arguments.null_stream() || arguments.uses_gpus()))
    return refuse(ExitCode::not_implemented,
                  "--peer mpi measures blocking calls of processes on CPU memory: leave out -t, -g, -y 0 and --device cuda");
  if (arguments.measures_limit && (!arguments.null_stream() || arguments.uses_gpus()))
    return refuse(ExitCode::not_implemented,
                  "--peer limit measures blocking loops on CPU memory: leave out -y 0 and --device cuda");
  if (arguments.in_arena && (arguments.uses_gpus() || !arguments.measures_fccl()))
    return refuse(ExitCode::not_implemented,
                  "--buffers arena measures FCCL on its own CPU memory: leave out --device cuda and --peer");
  if (arguments.fresh && arguments.uses_gpus())
    return refuse(ExitCode::not_implemented, "--fresh writes inputs on the processor: leave out --device cuda");
  if (arguments.init && (!arguments.measures_fccl() || arguments.calibrates))
    return refuse(ExitCode::usage, "--init tells of FCCL's init beside a table: leave out --peer and --calibrate");
  if (arguments.json_path == kStandardOutput && arguments.csv_path == kStandardOutput)
    return refuse(ExitCode::usage, "--json - and --csv - both take standard output: name a file for one of them");
  if (arguments.calibrates &&
      (!arguments.measures_fccl() || arguments.uses_gpus() || !arguments.json_path.empty() || !arguments.csv_path.empty()))
    return refuse(
        ExitCode::usage,
        "--calibrate measures FCCL on CPU memory and prints its costs: leave out --peer, -J, --csv and --device cuda");
  return {arguments, ExitCode::success, ""};
}

}  // namespace

Parsed parse_arguments(int argc, char* const* argv) {
  std::string letters;
  std::vector<option> names;
  for (const Flag& flag : flags()) {
    if (flag.has_letter()) letters += static_cast<char>(flag.key) + std::string(flag.value ? ":" : "");
    names.push_back({flag.name, flag.value ? required_argument : no_argument, nullptr, flag.key});
  }
  names.push_back({nullptr, 0, nullptr, 0});

  Arguments arguments;
  optind = 0;  // getopt keeps its position between calls
  opterr = 0;
  for (;;) {
    const int index = optind > 0 ? optind : 1;
    const int key = getopt_long(argc, argv, letters.c_str(), names.data(), nullptr);
    if (key == -1) break;
    if (key == 'h') return {std::nullopt, ExitCode::success, usage_of(argv[0])};
    if (key == '?') return refuse(ExitCode::usage, "unknown option or missing value: " + std::string(argv[index]) + kSeeHelp);
    const Flag& flag = *std::find_if(flags().begin(), flags().end(), [&](const Flag& each) { return each.key == key; });
    if (const Taken taken = flag.take(arguments, optarg); taken != Taken::yes) return refuse_value(flag, taken, optarg);
  }
  if (optind < argc) return refuse(ExitCode::usage, "unknown argument: " + std::string(argv[optind]) + kSeeHelp);
  return check(arguments);
}

std::size_t next_size(const Arguments& arguments, std::size_t bytes) {
  return arguments.step_factor > 1 ? bytes * static_cast<std::size_t>(arguments.step_factor) : bytes + arguments.step_bytes;
}

}  // namespace fccl::perf
