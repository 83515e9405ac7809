// The one reader of the environment.
#include "settings/settings.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <set>

#include "base/nearest.h"
#include "os/clock.h"
#include "os/log.h"
#include "plan/catalog.h"
#include "plan/project.h"
#include "settings/port_range.h"
#include "topology/costs.h"
#include "topology/provider.h"

namespace fccl::core {
namespace {

using namespace std::chrono_literals;
using Scope = Setting::Scope;

constexpr std::string_view kLogLevels[] = {"off", "error", "warn", "info", "debug"};

constexpr std::string_view kWireTypes[] = {"call", "float32"};

constexpr std::string_view kCudaPaths[] = {"auto", "blocking", "bounce", "host", "peer"};

constexpr std::string_view kAutoOnOff[] = {"auto", "on", "off"};

constexpr std::string_view kOnOff[] = {"on", "off"};

// Limits that keep the settings that ranks must agree on within one message.
constexpr size_t kLongestCosts = 512;
constexpr size_t kLongestNic = 255;
constexpr size_t kLongestPath = 4095;
// The letters of a value that a message shows.
constexpr size_t kShown = 100;

std::string fault_of_provider(std::string_view text) {
  return is_provider_name(text) ? "" : fmt::format("is not the name of a provider, which has {}", kFormOfProvider);
}

// Ranks may run in different folders.
std::string fault_of_library(std::string_view text) {
  if (text.size() > kLongestPath) return fmt::format("has {} bytes, more than the {} of a path", text.size(), kLongestPath);
  return text.starts_with('/') ? "" : "is not the whole path of a shared library: give one that begins with /";
}

std::string fault_of_nics(std::string_view text) {
  const auto is_visible = [](char c) { return c > ' ' && c <= '~'; };
  bool has_name = false;
  while (!text.empty()) {
    const std::string_view name = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), name.size() + 1));
    if (name.size() > kLongestNic || !std::ranges::all_of(name, is_visible))
      return fmt::format("has the name \"{}\", which no NIC has: give names without spaces, with commas between",
                         name.substr(0, kShown));
    has_name = has_name || !name.empty();
  }
  return has_name ? "" : "names no NIC; `fccl-info topology` lists those of this host";
}

std::string fault_of_costs(std::string_view text) {
  if (text.size() > kLongestCosts) return fmt::format("has {} bytes, more than the {} it may have", text.size(), kLongestCosts);
  const auto parsed = parse_costs(text);
  return parsed ? "" : "are no costs: " + parsed.error().message;
}

std::string fault_of_algorithm(std::string_view text) {
  std::set<std::string_view> known;
  for (const auto& algorithm : plan::kCatalog<plan::Project>) known.insert(algorithm.name);
  return known.contains(text) ? "" : fmt::format("is not a plan between hosts; there are {}", fmt::join(known, ", "));
}

std::string fault_of_ports(std::string_view text) {
  return port_range_in(text) ? "" : "are no ports: give one, or the first and the last with a dash between, from 1 to 65535";
}

constexpr Setting kSettings[] = {
    {"FCCL_TIMEOUT", Seconds{&Settings::timeout, 1ms, 1'000'000s}, Scope::local,
     "how long one wait of an operation may take; `timeoutMs` of a communicator's config overrides it"},
    {"FCCL_INIT_TIMEOUT", Seconds{&Settings::init_timeout, 1ms, 1'000'000s}, Scope::local,
     "how long creating a communicator may take; `initTimeoutMs` of its config overrides it"},
    {"FCCL_SOCKET_IFNAME", Text{&Settings::interface_name, "names"}, Scope::local,
     "the interfaces for the bootstrap: comma-separated prefixes of names, `=` in front for whole names, `^` to "
     "exclude. Unset: the one that reaches `MASTER_ADDR`, that of the default route, or the first that is up"},
    {"NCCL_SOCKET_IFNAME", Text{&Settings::nccl_interface_name, "names"}, Scope::local,
     "the same, where `FCCL_SOCKET_IFNAME` is unset; without effect where no interface fits"},
    {"GLOO_SOCKET_IFNAME", Text{&Settings::gloo_interface_name, "names"}, Scope::local,
     "whole names of interfaces, where the two above are unset; without effect where no interface fits"},
    {"MASTER_ADDR", Text{&Settings::master_address, "a host"}, Scope::local,
     "as torchrun sets it: the interface that reaches this host, where no variable above names one; without effect "
     "where it is the loopback"},
    {"FCCL_SOCKET_PORTS", Text{&Settings::socket_ports, "ports", fault_of_ports}, Scope::local,
     "the ports for the bootstrap, as 29600-29699; unset, the system chooses. A communicator that is being made "
     "takes two; between hosts each rank then keeps one, if one is left"},
    {"FCCL_HOST_ID", Text{&Settings::host_id}, Scope::local,
     "stands for the boot id, name and IPC namespace of a host; the namespaces of PIDs and of the network must be "
     "the same"},
    {"FCCL_LOG", Choice{&Settings::log_level, kLogLevels}, Scope::local, "the least severe messages that go to stderr"},
    {"NCCL_DEBUG", Text{&Settings::nccl_debug, "a level of NCCL"}, Scope::local,
     "INFO and TRACE, in any letters, stand for `FCCL_LOG=info` where `FCCL_LOG` is unset"},
    {"FCCL_METRICS_PORT", Number{&Settings::metrics_port, 0, 65535}, Scope::local,
     "the port on which the first rank of a host serves all its ranks' [metrics](metrics.md#prometheus); 0: none"},
    {"FCCL_METRICS_ADDRESS", Text{&Settings::metrics_address, "an address"}, Scope::local,
     "the address of this host on which they are served, in numbers"},
    {"FCCL_MAILBOX_BYTES", Bytes{&Settings::mailbox_bytes, 64, 64 * 1024}, Scope::agreed,
     "the largest message on the path of short calls. Collectives but AlltoAllV take twice this between the two "
     "ranks of a host. Where ranks outnumber processors they take eight times this, up to 64 KiB"},
    {"FCCL_SLOT_BYTES", Bytes{&Settings::slot_bytes, 64, 256 * 1024}, Scope::agreed,
     "the largest slice that goes through a ring at once"},
    {"FCCL_CROSS_MEMORY_ATTACH", Choice{&Settings::cross_memory_attach, kAutoOnOff}, Scope::agreed,
     "lets long AllGathers, AlltoAlls and receives read their peers' memory, if the kernel allows it. auto: on if "
     "ranks do not outnumber processors; for shorter blocks a trial at init decides"},
    {"FCCL_ARENA_BYTES", Number{&Settings::arena_bytes, 0, size_t{1} << 46}, Scope::local,
     "the most that a process can allocate by `fcclMemAlloc` at a time, as addresses. 0: as much as the machine has "
     "memory, or a quarter of what `ulimit -v` leaves, if that is less"},
    {"FCCL_MAPPED", Choice{&Settings::mapped, kOnOff}, Scope::agreed,
     "lets ranks of one host read each other's buffers of `fcclMemAlloc` in place"},
    {"FCCL_TRANSPORT", Text{&Settings::transport, "auto, or a provider", fault_of_provider}, Scope::agreed,
     "the provider between hosts: efa, verbs or tcp of libfccl_ofi.so, or a plug-in's own; auto: the best that is "
     "there"},
    {"FCCL_TRANSPORT_PLUGIN", Text{&Settings::transport_plugin, "a path that begins with /", fault_of_library}, Scope::local,
     "the library of [another transport](../how_to/write_a_transport.md), in the place of libfccl_ofi.so; its code "
     "runs in every rank"},
    {"FCCL_NICS", Text{&Settings::nics, "names", fault_of_nics}, Scope::local,
     "the NICs that may be used, comma-separated, as `fccl-info topology` or libfabric names them; unset, all but "
     "loopback and bridges of containers"},
    {"FCCL_WIRE_DTYPE", Choice{&Settings::wire_dtype, kWireTypes}, Scope::agreed,
     "the type of a host's partial sums: that of the call, rounded once per level, or float32 for those of 8 and 16 "
     "bits, rounded once"},
    {"FCCL_WIRE_SLOT_BYTES", Bytes{&Settings::wire_slot_bytes, 4096, 4 * 1024 * 1024}, Scope::agreed,
     "the largest message between hosts; with many hosts messages are smaller"},
    {"FCCL_COSTS", Text{&Settings::costs, "costs, to 512 bytes", fault_of_costs}, Scope::agreed,
     "the [costs](../explanation/algorithms.md#costs) by which a plan between hosts is chosen; unset, those of the "
     "transport's kind"},
    {"FCCL_ALGORITHM", Text{&Settings::algorithm, "names of plans", fault_of_algorithm}, Scope::agreed,
     "the plan between hosts for every collective that has one of this name (`fccl-info explain`); unset, the "
     "cheapest"},
    {"FCCL_CUDA_PATH", Choice{&Settings::cuda_path, kCudaPaths}, Scope::agreed,
     "how [calls on CUDA memory](../explanation/cuda.md#paths) run"},
    {"FCCL_CUDA_BUFFER", Bytes{&Settings::cuda_buffer_bytes, 4096, size_t{1} << 30}, Scope::agreed,
     "the most that a call on CUDA memory has in host memory at a time; what is longer is cut. Each lane takes two "
     "such buffers for bounce, one for blocking"},
    {"FCCL_CUDA_LANDING", Bytes{&Settings::cuda_landing_bytes, Settings::kCudaLandingStep, 64 * 1024 * 1024}, Scope::agreed,
     "the four slots together by which a rank's GPU gives bytes to the others of its host, if the path is host or "
     "peer. By peer ReduceScatter and AllReduce take a fourth of it more for each rank; more than 64 MiB in all are refused"},
    {"FCCL_CUDA_QUEUE", Number{&Settings::cuda_queue_entries, 32, 1000}, Scope::local,
     "the most operations of a communicator's lane that may be outstanding on its GPU; a call without room waits"},
    {"FCCL_CUDA_SMS", Number{&Settings::cuda_blocks, 1, 1024}, Scope::local,
     "the most blocks of threads of a kernel that adds; a processor of the GPU runs two"},
};

// Prefixes of variables that the tests, the perf binaries and ./dev read.
constexpr std::string_view kForeignPrefixes[] = {"FCCL_TEST", "FCCL_TORCH", "FCCL_CLUSTER"};

template <class... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};

template <class Value>
bool parse_number(std::string_view text, Value& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size();
}

// Sets the field from the text. Returns what is wrong with the text, "" if nothing is.
std::string set(Settings& settings, const Seconds& kind, std::string_view text) {
  double seconds = 0;
  if (!parse_number(text, seconds) || !(seconds >= in_seconds(kind.least)) || seconds > in_seconds(kind.most))
    return fmt::format("is not a time: give seconds between {} and {:.0f}", in_seconds(kind.least), in_seconds(kind.most));
  settings.*kind.field = std::chrono::milliseconds(std::llround(seconds * 1000));
  return {};
}

std::string set(Settings& settings, const Bytes& kind, std::string_view text) {
  size_t bytes = 0;
  if (!parse_number(text, bytes) || bytes < kind.multiple || bytes > kind.most || bytes % kind.multiple != 0)
    return fmt::format("is not a size: give a multiple of {} between {} and {}", kind.multiple, kind.multiple, kind.most);
  settings.*kind.field = bytes;
  return {};
}

std::string set(Settings& settings, const Number& kind, std::string_view text) {
  size_t number = 0;
  if (!parse_number(text, number) || number < kind.least || number > kind.most)
    return fmt::format("is not a number: give one between {} and {}", kind.least, kind.most);
  settings.*kind.field = number;
  return {};
}

std::string set(Settings& settings, const Text& kind, std::string_view text) {
  if (kind.fault_of != nullptr)
    if (std::string fault = kind.fault_of(text); !fault.empty()) return fault;
  settings.*kind.field = text;
  return {};
}

std::string set(Settings& settings, const Choice& kind, std::string_view text) {
  if (std::find(kind.choices.begin(), kind.choices.end(), text) == kind.choices.end())
    return fmt::format("is none of: {}", fmt::join(kind.choices, ", "));
  settings.*kind.field = text;
  return {};
}

bool asks_for_info(std::string nccl_debug) {
  std::ranges::transform(nccl_debug, nccl_debug.begin(), [](unsigned char letter) { return std::toupper(letter); });
  return nccl_debug == "INFO" || nccl_debug == "TRACE";
}

bool looks_like_a_setting(std::string_view name) {
  return name.starts_with("FCCL_") && std::none_of(std::begin(kForeignPrefixes), std::end(kForeignPrefixes),
                                                   [&](std::string_view prefix) { return name.starts_with(prefix); });
}

// True unless a launcher has told this process that another one is the first of its host.
bool is_first_of_host() {
  for (const char* variable : {"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"})
    if (const char* place = std::getenv(variable)) return std::string_view(place) == "0";
  return true;
}

void warn_once() {
  static constinit std::atomic<bool> warned{false};
  if (warned.exchange(true) || !is_first_of_host()) return;
  std::vector<std::string_view> environment;
  for (char** entry = ::environ; entry != nullptr && *entry != nullptr; ++entry) environment.emplace_back(*entry);
  for (const std::string& warning : warnings_of(environment))
    log(LogLevel::warn, with_code(warning, MessageKind::unknown_setting));
}

}  // namespace

std::span<const Setting> every_setting() { return kSettings; }

std::string text_of(const Setting& setting, const Settings& settings) {
  return std::visit(Overloaded{[&](const Seconds& kind) { return fmt::format("{}", in_seconds(settings.*kind.field)); },
                               [&](const Bytes& kind) { return fmt::format("{}", settings.*kind.field); },
                               [&](const Number& kind) { return fmt::format("{}", settings.*kind.field); },
                               [&](const auto& kind) { return settings.*kind.field; }},
                    setting.kind);
}

std::string Settings::agreement() const {
  std::string lines;
  for (const Setting& setting : kSettings)
    if (setting.scope == Scope::agreed) lines += fmt::format("{}={}\n", setting.variable, text_of(setting, *this));
  return lines;
}

Result<Settings> parse_settings(const std::function<std::string_view(const char*)>& text_of_variable) {
  Settings settings;
  for (const Setting& setting : kSettings) {
    const std::string_view text = text_of_variable(setting.variable);
    if (text.empty()) continue;
    const std::string fault = std::visit([&](const auto& kind) { return set(settings, kind, text); }, setting.kind);
    if (!fault.empty())
      return fail(MessageKind::wrong_setting, fmt::format("{}={}{} {}", setting.variable, text.substr(0, kShown),
                                                          text.size() > kShown ? "..." : "", fault));
  }
  if (text_of_variable("FCCL_LOG").empty() && asks_for_info(settings.nccl_debug)) settings.log_level = "info";
  return settings;
}

Result<Settings> read_settings() {
  Result<Settings> settings = parse_settings([](const char* variable) {
    const char* value = std::getenv(variable);
    return value == nullptr ? std::string_view{} : std::string_view{value};
  });
  if (!settings) return settings;
  set_log_level(settings->log_level);
  warn_once();
  return settings;
}

std::vector<std::string> warnings_of(std::span<const std::string_view> environment) {
  std::vector<std::string> warnings;
  std::vector<std::string_view> known;
  for (const Setting& setting : kSettings) known.emplace_back(setting.variable);
  for (const std::string_view entry : environment) {
    const std::string_view name = entry.substr(0, entry.find('='));
    if (!looks_like_a_setting(name)) continue;
    const std::string_view meant = nearest(name, known);
    if (name != meant)
      warnings.push_back(fmt::format("{} is not a setting of FCCL and has no effect; the nearest is {}", name, meant));
  }
  return warnings;
}

}  // namespace fccl::core
