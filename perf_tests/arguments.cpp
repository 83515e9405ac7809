// Reads the command line strictly: a flag or value that means nothing ends the program instead of measuring something else.
#include "arguments.h"

#include <getopt.h>

#include <cctype>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string_view>

#include "elements.h"

namespace fccl::perf {
namespace {

constexpr char kFlags[] =
    "  [-t,--nthreads <n>] ranks per process, as threads (1)\n"
    "  [-g,--ngpus <1>] accepted for scripts; a thread is one rank\n"
    "  [-b,--minbytes <size K|M|G>] first size of the sweep (32M)\n"
    "  [-e,--maxbytes <size K|M|G>] last size of the sweep (32M)\n"
    "  [-i,--stepbytes <size>] increment between sizes (1M)\n"
    "  [-f,--stepfactor <n>] factor between sizes; wins over -i (off)\n"
    "  [-n,--iters <n>] timed iterations per size (20)\n"
    "  [-m,--agg_iters <n>] calls per iteration (1)\n"
    "  [-w,--warmup_iters <n>] calls per size before the sweep (1)\n"
    "  [-N,--run_cycles <n>] sweeps; 0 is without end (1)\n"
    "  [-c,--check <n>] checked calls per size; 0 is unchecked (1)\n"
    "  [-o,--op <sum|min|max|avg|all>] operator of collectives that reduce (sum)\n"
    "  [-d,--datatype <int8|uint8|int16|uint16|int32|uint32|int64|uint64|half|float|double|bfloat16|f8e4m3|f8e5m2|bool|all>] "
    "(float)\n"
    "  [-r,--root <rank>] root of rooted collectives; -1 is all in turn (0)\n"
    "  [-z,--blocking <0|1|2|3>] 1: wait and barrier after each call, 2: wait after each call,\n"
    "                            3: wait and untimed barrier after each iteration (0)\n"
    "  [-y,--stream_null <0|1>] 1: each call runs on its own thread and returns when done, 0: calls queue on a host stream "
    "(1)\n"
    "  [-T,--timeout <seconds>] deadline of every call; 0 leaves it to FCCL_TIMEOUT (0)\n"
    "  [-a,--average <0|1|2|3>] time shown: 0 rank 0, 1 mean, 2 minimum, 3 maximum over ranks (1)\n"
    "  [-u,--unalign <n>] shift buffers by n elements (0)\n"
    "  [-h,--help]\n";

constexpr option kLongOptions[] = {{"nthreads", required_argument, nullptr, 't'},
                                   {"ngpus", required_argument, nullptr, 'g'},
                                   {"minbytes", required_argument, nullptr, 'b'},
                                   {"maxbytes", required_argument, nullptr, 'e'},
                                   {"stepbytes", required_argument, nullptr, 'i'},
                                   {"stepfactor", required_argument, nullptr, 'f'},
                                   {"iters", required_argument, nullptr, 'n'},
                                   {"agg_iters", required_argument, nullptr, 'm'},
                                   {"warmup_iters", required_argument, nullptr, 'w'},
                                   {"run_cycles", required_argument, nullptr, 'N'},
                                   {"check", required_argument, nullptr, 'c'},
                                   {"op", required_argument, nullptr, 'o'},
                                   {"datatype", required_argument, nullptr, 'd'},
                                   {"root", required_argument, nullptr, 'r'},
                                   {"blocking", required_argument, nullptr, 'z'},
                                   {"stream_null", required_argument, nullptr, 'y'},
                                   {"timeout", required_argument, nullptr, 'T'},
                                   {"average", required_argument, nullptr, 'a'},
                                   {"unalign", required_argument, nullptr, 'u'},
                                   {"help", no_argument, nullptr, 'h'},
                                   {nullptr, 0, nullptr, 0}};

std::string usage_of(const char* program) { return std::string("USAGE: ") + program + "\n" + kFlags; }

Parsed refuse(ExitCode code, const std::string& text) { return {std::nullopt, code, text + "\n"}; }

// An integer of [minimum, maximum], whole text.
std::optional<int> read_integer(std::string_view text, int minimum, int maximum = std::numeric_limits<int>::max()) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < minimum || value > maximum) return std::nullopt;
  return value;
}

// Bytes: a number and at most one binary suffix.
std::optional<std::size_t> read_size(const char* text) {
  char* end = nullptr;
  const double number = std::strtod(text, &end);
  if (end == text || !(number >= 0)) return std::nullopt;
  const std::string_view suffix = end;
  if (suffix.size() > 1) return std::nullopt;
  constexpr std::string_view kSuffixes = "KMG";
  const std::size_t order = suffix.empty() ? 0 : kSuffixes.find(static_cast<char>(std::toupper(suffix[0]))) + 1;
  if (!suffix.empty() && order == 0) return std::nullopt;
  const double bytes = std::ldexp(number, 10 * static_cast<int>(order));
  return bytes < 0x1p62 ? std::optional(static_cast<std::size_t>(bytes)) : std::nullopt;
}

template <class To, class From>
bool store(To& place, const std::optional<From>& value) {
  if (value) place = static_cast<To>(*value);
  return value.has_value();
}

// False if `text` is no value for `flag`.
bool take(Arguments& arguments, int flag, const char* text) {
  switch (flag) {
    case 't':
      return store(arguments.threads, read_integer(text, 1, 1024));
    case 'g':
      return read_integer(text, 1, 1).has_value();
    case 'b':
      return store(arguments.min_bytes, read_size(text));
    case 'e':
      return store(arguments.max_bytes, read_size(text));
    case 'i':
      return store(arguments.step_bytes, read_size(text));
    case 'f':
      return store(arguments.step_factor, read_integer(text, 1));
    case 'n':
      return store(arguments.iterations, read_integer(text, 1));
    case 'm':
      return store(arguments.aggregated, read_integer(text, 1));
    case 'w':
      return store(arguments.warmup, read_integer(text, 0));
    case 'N':
      return store(arguments.cycles, read_integer(text, 0));
    case 'c':
      return store(arguments.checks, read_integer(text, 0));
    case 'o':
      arguments.op = text;
      return arguments.op == "all" || find_operator(text);
    case 'd':
      arguments.type = text;
      return arguments.type == "all" || find_element_type(text);
    case 'r':
      return store(arguments.root, read_integer(text, -1));
    case 'z':
      return store(arguments.blocking, read_integer(text, 0, 3));
    case 'y':
      return store(arguments.null_stream, read_integer(text, 0, 1));
    case 'T':
      return store(arguments.timeout_seconds, read_integer(text, 0, 1'000'000));
    case 'a':
      return store(arguments.average, read_integer(text, 0, 3));
    default:
      return store(arguments.unaligned_elements, read_integer(text, 0, 1 << 20));
  }
}

// Refuses what cannot be run although each value is fine by itself.
Parsed check(const Arguments& arguments) {
  if (const Operator* op = find_operator(arguments.op); op && !op->available)
    return refuse(ExitCode::not_implemented, "operator " + arguments.op + " is not implemented yet; use sum, min, max or avg");
  if (arguments.min_bytes > arguments.max_bytes)
    return refuse(ExitCode::bad_sizes, "invalid sizes for 'minbytes' and 'maxbytes': " + std::to_string(arguments.min_bytes) +
                                           " > " + std::to_string(arguments.max_bytes));
  if (arguments.min_bytes < arguments.max_bytes && next_size(arguments, arguments.min_bytes) == arguments.min_bytes)
    return refuse(ExitCode::bad_sizes,
                  "a sweep from " + std::to_string(arguments.min_bytes) + " bytes never ends with this -i or -f");
  return {arguments, ExitCode::success, ""};
}

}  // namespace

Parsed parse_arguments(int argc, char* const* argv) {
  Arguments arguments;
  optind = 0;  // getopt keeps its place between calls
  opterr = 0;
  for (;;) {
    const int index = optind > 0 ? optind : 1;
    const int flag = getopt_long(argc, argv, "t:g:b:e:i:f:n:m:w:N:c:o:d:r:z:y:T:a:u:h", kLongOptions, nullptr);
    if (flag == -1) break;
    if (flag == 'h') return {std::nullopt, ExitCode::success, usage_of(argv[0])};
    if (flag == '?')
      return refuse(ExitCode::usage, "unknown option or missing value: " + std::string(argv[index]) + "\n" + usage_of(argv[0]));
    if (take(arguments, flag, optarg)) continue;
    const bool size = flag == 'b' || flag == 'e' || flag == 'i';
    return refuse(
        size ? ExitCode::bad_sizes : ExitCode::usage,
        "invalid value for -" + std::string(1, static_cast<char>(flag)) + ": " + optarg + "; --help lists what is known");
  }
  if (optind < argc)
    return refuse(ExitCode::usage, "unknown argument: " + std::string(argv[optind]) + "\n" + usage_of(argv[0]));
  return check(arguments);
}

std::size_t next_size(const Arguments& arguments, std::size_t bytes) {
  return arguments.step_factor > 1 ? bytes * static_cast<std::size_t>(arguments.step_factor) : bytes + arguments.step_bytes;
}

}  // namespace fccl::perf
