// Reads the values of flags strictly: a meaningless value is refused, so that nothing else is measured in its place.
#include "flags.h"

#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string_view>

#include "elements.h"

namespace fccl::perf {
namespace {

constexpr int kAnyNumber = std::numeric_limits<int>::max();

// Reads an integer of [minimum, maximum]; it must be the whole text.
std::optional<int> read_integer(std::string_view text, int minimum, int maximum) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < minimum || value > maximum) return std::nullopt;
  return value;
}

// Reads a number of bytes: a number with at most one binary suffix.
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

template <auto field, int minimum, int maximum = kAnyNumber>
Taken integer(Arguments& arguments, const char* text) {
  const auto value = read_integer(text, minimum, maximum);
  if (!value) return Taken::bad_value;
  arguments.*field = static_cast<std::remove_reference_t<decltype(arguments.*field)>>(*value);
  return Taken::yes;
}

template <auto field>
Taken size(Arguments& arguments, const char* text) {
  const auto value = read_size(text);
  if (value) arguments.*field = *value;
  return value ? Taken::yes : Taken::bad_size;
}

template <auto field>
Taken present(Arguments& arguments, const char*) {
  arguments.*field = true;
  return Taken::yes;
}

// Takes a flag of nccl-tests of which only one value has a meaning here.
template <int neutral, int minimum, int maximum>
Taken only(Arguments&, const char* text) {
  const auto value = read_integer(text, minimum, maximum);
  if (!value) return Taken::bad_value;
  return *value == neutral ? Taken::yes : Taken::impossible_here;
}

Taken op(Arguments& arguments, const char* text) {
  arguments.op = text;
  return arguments.op == "all" || find_operator(text) ? Taken::yes : Taken::bad_value;
}

Taken type(Arguments& arguments, const char* text) {
  const ElementType* const named = find_element_type(text);
  arguments.type = named ? std::string(named->name) : text;
  return named || arguments.type == "all" ? Taken::yes : Taken::bad_value;
}

Taken root(Arguments& arguments, const char* text) {
  if (std::string_view(text) == "all") text = "-1";
  return integer<&Arguments::root, -1>(arguments, text);
}

Taken json(Arguments& arguments, const char* text) {
  arguments.json_path = text;
  return arguments.json_path == kStandardOutput || arguments.json_path.ends_with(".json") ? Taken::yes : Taken::bad_value;
}

// Refuses a number, since -F of rccl-tests takes one: the iterations between flushes of a cache.
Taken csv(Arguments& arguments, const char* text) {
  arguments.csv_path = text;
  return arguments.csv_path.find_first_not_of("0123456789") == std::string::npos ? Taken::bad_value : Taken::yes;
}

Taken rotate(Arguments& arguments, const char* text) {
  const std::string_view word = text;
  arguments.rotates = word == "yes";
  return word == "yes" || word == "no" ? Taken::yes : Taken::bad_value;
}

Taken buffers(Arguments& arguments, const char* text) {
  const std::string_view word = text;
  arguments.in_arena = word == "arena";
  return word == "private" || word == "arena" ? Taken::yes : Taken::bad_value;
}

Taken device(Arguments& arguments, const char* text) {
  const std::string_view name = text;
  arguments.device = name == "cuda" ? DeviceKind::cuda : DeviceKind::cpu;
  return name == "cpu" || name == "cuda" ? Taken::yes : Taken::bad_value;
}

Taken peer(Arguments& arguments, const char* text) {
  const std::string_view name = text;
  arguments.measures_mpi = name == "mpi";
  arguments.measures_limit = name == "limit";
  return arguments.measures_fccl() ? Taken::bad_value : Taken::yes;
}

Taken uneven(Arguments& arguments, const char* text) {
  arguments.uneven = find_uneven(text);
  return arguments.uneven ? Taken::yes : Taken::bad_value;
}

using A = Arguments;

constexpr Flag kFlags[] = {
    {'t', "nthreads", "n", "ranks per process, as threads (1)", integer<&A::threads, 1, 1024>},
    {'g', "ngpus", "n", "with --device cuda: ranks per -t, each with a thread of its own; of CPU memory 1 (1)",
     integer<&A::gpus, 1, 1024>},
    {'b', "minbytes", "size K|M|G", "first size of the sweep (32M)", size<&A::min_bytes>},
    {'e', "maxbytes", "size K|M|G", "last size of the sweep (32M)", size<&A::max_bytes>},
    {'i', "stepbytes", "size K|M|G", "increment between sizes (1M)", size<&A::step_bytes>},
    {'f', "stepfactor", "n", "factor between sizes; above 1 it wins over -i (1)", integer<&A::step_factor, 1>},
    {'n', "iters", "n", "timed iterations per size (20)", integer<&A::iterations, 1>},
    {'m', "agg_iters", "n", "calls per iteration, one after another and in no group (1)", integer<&A::aggregated, 1>},
    {'w', "warmup_iters", "n", "calls per size before the sweep (1)", integer<&A::warmup, 0>},
    {'N', "run_cycles", "n", "sweeps; 0 is without end (1)", integer<&A::cycles, 0>},
    {'p', "parallel_init", "0|1", "threads always join concurrently (0)", integer<&A::parallel_init, 0, 1>},
    {'I', "per_iter_timing", "0|1", "statistics over iterations, from a second run of each size (0)",
     integer<&A::per_iteration, 0, 1>},
    {'K', "per_iter_skip", "n", "leading iterations that these leave out (0)", integer<&A::skipped, 0>},
    {'c', "check", "n", "checked calls per size besides the last timed ones; 0 checks nothing (1)", integer<&A::checks, 0>},
    {'o', "op", "sum|prod|min|max|avg|mulsum|all", "operator of collectives that reduce (sum)", op},
    {'d', "datatype", "int8|uint8|int16|uint16|int32|uint32|int64|uint64|half|float|double|bfloat16|f8e4m3|f8e5m2|bool|all",
     "(float)", type},
    {'r', "root", "rank|all", "root of rooted collectives; all (or -1): each in turn (0)", root},
    {'z', "blocking", "0|1|2|3",
     "1: wait and barrier after each call, 2: wait after each call, 3: wait and untimed barrier after each iteration (0)",
     integer<&A::blocking, 0, 3>},
    {'y', "stream_null", "0|1",
     "1: calls return when they are done, 0: they queue on a host stream (1); with --device cuda 1: the default stream, 0: "
     "each rank's own (0)",
     integer<&A::stream_null, 0, 1>},
    {'T', "timeout", "seconds", "deadline of every call; 0 leaves it to FCCL_TIMEOUT (0)",
     integer<&A::timeout_seconds, 0, 1'000'000>},
    {'G', "cudagraph", "0", "no call is captured in a CUDA graph yet", only<0, 0, kAnyNumber>},
    {'C', "report_cputime", "0|1", "show the time until the calls are issued (0)", integer<&A::cpu_time, 0, 1>},
    {'S', "report_timestamps", "0|1", "show when a row was finished (0)", integer<&A::timestamps, 0, 1>},
    {'J', "output_file", "path.json|-", "also write a JSON file; .0, .1 ... is appended if it exists; -: as --json -", json},
    {'a', "average", "0|1|2|3", "time shown: 0 rank 0, 1 mean, 2 minimum, 3 maximum over ranks (1)",
     integer<&A::average, 0, 3>},
    {'R', "local_register", "0", "memory of --buffers arena needs no registration", only<0, 0, 2>},
    {'x', "cta_policy", "0", "no call runs thread blocks yet", only<0, 0, 2>},
    {'D', "device_implementation", "0", "there are no device kernels yet", only<0, 0, kAnyNumber>},
    {'V', "device_cta_count", "16", "there are no device kernels yet", only<16, 1, 128>},
    {'M', "memory", "0|1", "show how much memory rank 0's process took (0)", integer<&A::memory, 0, 1>},
    {'u', "unalign", "n", "shift buffers by n elements (0)", integer<&A::unaligned_elements, 0, 1 << 20>},
    {kFirstOwnFlag, "odd", nullptr, "counts odd and no multiple of 16 bytes, buffers at odd addresses", present<&A::odd>},
    {kFirstOwnFlag + 6, "uneven", "linear|one_has_all|one_has_none|random|equal",
     "counts of the blocks, of binaries whose names end in v (linear)", uneven},
    {kFirstOwnFlag + 1, "ulp", nullptr, "a column with the largest error, in units in the last place, of a call on random data",
     present<&A::ulp>},
    {kFirstOwnFlag + 2, "percentiles", nullptr, "columns p50 and p99 of a second run of each size", present<&A::percentiles>},
    {kFirstOwnFlag + 3, "peer", "mpi|limit",
     "instead of FCCL measure the MPI that mpirun belongs to, or bare loops over memory that all ranks map", peer},
    {kFirstOwnFlag + 4, "calibrate", nullptr,
     "instead of a sweep measure the costs between hosts, -n times, and print them as FCCL_COSTS takes them",
     present<&A::calibrates>},
    {kFirstOwnFlag + 5, "device", "cpu|cuda",
     "whose memory the buffers are; ranks share a GPU where there are fewer GPUs (cpu)", device},
    {kCsvFlag, "csv", "path|-",
     "also write the rows as CSV, one for each direction; .0, .1 ... goes before .csv if the file exists; -: as --json -", csv},
    {kFirstOwnFlag + 7, "json", "path.json|-", "as -J; -: print the file alone, and the table on standard error", json},
    {kFirstOwnFlag + 8, "skew", "microseconds",
     "columns apart and last of one more run of each size, to each of whose calls every rank comes later by up to that (0)",
     integer<&A::skew, 0, 10'000'000>},
    {kFirstOwnFlag + 9, "rotate", "yes|no", "no: calls use the same buffers again, so that they find them in the cache (yes)",
     rotate},
    {kFirstOwnFlag + 12, "fresh", nullptr,
     "every rank writes its inputs before each timed iteration, as whoever computes does, and waits for the others; in no time",
     present<&A::fresh>},
    {kFirstOwnFlag + 10, "buffers", "private|arena",
     "arena: buffers are memory that the ranks of a host map (fcclMemAlloc) (private)", buffers},
    {kFirstOwnFlag + 11, "init", nullptr,
     "show what init took: seconds of each step, sockets, messages, bytes and shared memory", present<&A::init>},
    {'h', "help", nullptr, "this text", nullptr},
};

}  // namespace

std::span<const Flag> flags() { return kFlags; }

}  // namespace fccl::perf
