// fccl-info: shows what FCCL finds on this machine and what is set.
#include <fmt/format.h>

#include <iostream>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "device/device.h"
#include "discovery/host_topology.h"
#include "fccl_info/explain.h"
#include "fccl_info/top.h"
#include "fccl_info/topology_file.h"
#include "settings/settings.h"
#include "topology/rails.h"
#include "topology/text.h"

namespace fccl::core {
namespace {

constexpr const char* kUsage = R"(fccl-info topology          this host: its NICs, GPUs and where they sit
fccl-info topology FILE     what FILE describes, in FCCL's text form or in NCCL's XML
fccl-info rails FILE        which NICs serve which rank of FILE
fccl-info explain COLLECTIVE SIZE [--topology FILE [--hosts H] | --hosts HxR[xNICS]] [--costs TEXT | --provider NAME]
                            which way a collective of SIZE takes between the hosts of FILE, or between H hosts like the one of
                            FILE, or between H hosts of R ranks and NICS NICs each (1); and how long that should take. SIZE is
                            that of the larger buffer, as for the perf binaries: 8, 64K, 16M, 1G. TEXT is what the parts cost;
                            else FCCL_COSTS is taken, else what the plug-in of FCCL_TRANSPORT_PLUGIN tells, else what is assumed of
                            the provider: efa, verbs or tcp (the default).
fccl-info explain COLLECTIVE SIZE --ranks R [--arena] [--in-place] [--dtype D]
                            which way a collective of SIZE takes among R ranks of one host, with buffers in their arenas, in
                            place, of type D (float32), and which threshold decides; by the settings here
fccl-info top PID           the ranks of this host that belong to the job of process PID: what each has done, which call it waits in,
                            and for whom
fccl-info gpus [--hold]     the GPUs that this process may use and what their driver offers, or why there are none; --hold keeps
                            them open until the input ends, since a driver may shut a GPU down that nobody has open
fccl-info settings          the variables that FCCL reads, and their values here; * marks those that are not the defaults
)";

Result<Topology> this_host() {
  FCCL_TRY_ASSIGN(Host host, discover_host());
  return Topology::of({std::move(host)});
}

Result<std::string> topology_of(std::span<const std::string> files) {
  if (!files.empty()) {
    FCCL_TRY_ASSIGN(const Topology described, read_topology(files.front()));
    return to_text(described);
  }
  FCCL_TRY_ASSIGN(const Settings settings, read_settings());
  FCCL_TRY_ASSIGN(const Topology topology, this_host());
  const std::string& plugin = settings.transport_plugin;
  const std::string note =
      plugin.empty()
          ? ""
          : fmt::format("# The NICs are those of this host's /sys; FCCL_TRANSPORT_PLUGIN={} may offer others.\n", plugin);
  return note + to_text(topology);
}

Result<std::string> rails_of(std::span<const std::string> files) {
  FCCL_TRY_ASSIGN(const Topology topology, read_topology(files.front()));
  const Rails rails(topology);
  std::string text;
  for (int rank = 0; rank < topology.ranks(); ++rank) {
    const Host& host = topology.hosts()[topology.host_of(rank)];
    const Place place = place_of(host, host.ranks[topology.local_rank_of(rank)]);
    text += fmt::format("rank {} on {}:", rank, host.name);
    for (const int nic : rails.nics_of(rank))
      text += fmt::format(" {} ({})", host.nics[nic].name, name_of(distance(place, host.nics[nic].place)));
    text += rails.nics_of(rank).empty() ? " no NIC\n" : "\n";
  }
  return text;
}

std::string text_of(const DeviceLimits& gpu) {
  return fmt::format("gpu {} at {}: {}\n  identity {}\n  waits for 64-bit words: {}\n  lends memory to other processes: {}\n",
                     gpu.ordinal, gpu.bus_id, gpu.name, gpu.identity,
                     gpu.waits_for_words ? "yes, so FCCL_CUDA_PATH=auto takes peer, host and bounce"
                                         : "no, so FCCL_CUDA_PATH=auto takes blocking",
                     gpu.lends ? "yes" : "no, so no call takes the path peer");
}

// The other GPUs of the process whose memory this one can read.
std::string reach_of(const Device& gpu, std::span<const std::shared_ptr<Device>> all) {
  std::string others;
  for (const auto& other : all)
    if (other.get() != &gpu && gpu.may_reach(other->limits().bus_id)) others += fmt::format(" {}", other->limits().ordinal);
  return fmt::format("  reaches GPUs:{}\n", others.empty() ? " none" : others);
}

void hold() {
  while (std::cin.ignore()) continue;
}

// A machine without a GPU is an answer, not a failure.
Result<std::string> list_gpus() {
  std::vector<std::shared_ptr<Device>> gpus;
  for (auto gpu = open_device(0); gpu || gpu.error().code != fcclInvalidArgument;
       gpu = open_device(static_cast<int>(gpus.size()))) {
    if (!gpu && gpus.empty() && gpu.error().code == fcclSystemError) return gpu.error().message + "\n";
    if (!gpu) return fail(gpu.error());
    gpus.push_back(std::move(*gpu));
  }
  std::string text;
  for (const auto& gpu : gpus) text += text_of(gpu->limits()) + reach_of(*gpu, gpus);
  return text;
}

Result<std::string> gpus_here(std::span<const std::string> words) {
  if (!words.empty() && words.front() != "--hold")
    return fail(fcclInvalidArgument, fmt::format("gpus takes --hold or nothing, but got '{}'", words.front()));
  Result<std::string> text = list_gpus();
  if (!text || words.empty()) return text;
  std::cout << std::exchange(*text, "") << std::flush;
  hold();
  return text;
}

Result<std::string> settings_here(std::span<const std::string>) {
  FCCL_TRY_ASSIGN(const Settings settings, read_settings());
  std::string text;
  for (const Setting& setting : every_setting()) {
    const std::string value = text_of(setting, settings);
    text += fmt::format("{} {}={}\n", value == text_of(setting, Settings{}) ? ' ' : '*', setting.variable, value);
  }
  return text;
}

struct Command {
  std::string_view name;
  size_t fewest_words, most_words;
  Result<std::string> (*run)(std::span<const std::string> words);
};

constexpr Command kCommands[] = {
    {"topology", 0, 1, topology_of}, {"rails", 1, 1, rails_of},         {"explain", 2, 10, explain},
    {"gpus", 0, 1, gpus_here},       {"settings", 0, 0, settings_here}, {"top", 1, 1, top},
};

constexpr int kWrongWords = 2;

int run(std::span<const std::string> words) {
  if (words.size() == 1 && (words[0] == "--help" || words[0] == "-h")) {
    std::cout << kUsage;
    return 0;
  }
  const std::string said = fmt::format("{}", fmt::join(words, " "));
  std::string complaint = fmt::format("there is no command '{}'", said);
  for (const Command& command : kCommands) {
    if (words.empty() || words[0] != command.name) continue;
    const auto rest = words.subspan(1);
    if (rest.size() < command.fewest_words || rest.size() > command.most_words) {
      complaint = fmt::format("'{}' has too {} words", said, rest.size() < command.fewest_words ? "few" : "many");
      break;
    }
    const Result<std::string> text = command.run(rest);
    if (!text) {
      std::cerr << "fccl-info: " << text.error().message << '\n';
      return text.error().code == fcclInvalidArgument ? kWrongWords : 1;
    }
    std::cout << *text << std::flush;
    return std::cout ? 0 : 1;
  }
  if (!words.empty()) std::cerr << "fccl-info: " << complaint << '\n';
  std::cerr << kUsage;
  return kWrongWords;
}

}  // namespace
}  // namespace fccl::core

int main(int count, char** words) {
  const std::vector<std::string> arguments(words + 1, words + count);
  return fccl::core::run(arguments);
}
