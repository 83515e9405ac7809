// fccl-info: shows what FCCL finds on this machine and what is set.
#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "system/host_topology.h"
#include "system/settings.h"
#include "topology/nccl_xml.h"
#include "topology/rails.h"
#include "topology/text.h"

namespace fccl {
namespace {

constexpr const char* kUsage = R"(fccl-info topology          this host: its NICs, GPUs and where they sit
fccl-info topology FILE     what FILE describes, in FCCL's text form or in NCCL's XML
fccl-info rails FILE        which NICs serve which rank of FILE
fccl-info settings          the variables that FCCL reads, and their values here; * marks those that are not the defaults
)";

Result<std::string> read_file(const std::string& path) {
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "r"), std::fclose);
  std::string text;
  if (file)
    for (int c; (c = std::fgetc(file.get())) != EOF;) text += static_cast<char>(c);
  if (!file || std::ferror(file.get()) != 0)
    return fail(fcclSystemError, fmt::format("cannot read the topology in {}: {}", path, std::strerror(errno)));
  return text;
}

Result<Topology> read_topology(const std::string& path) {
  const Result<std::string> file = read_file(path);
  if (!file) return fail(file.error());
  const std::string& text = *file;
  const size_t begin = text.find_first_not_of(" \t\r\n");
  const bool is_xml = begin != std::string::npos && text[begin] == '<';
  Result<Topology> topology = is_xml ? parse_nccl_xml(text) : parse_topology(text);
  if (!topology) return fail(topology.error().code, fmt::format("{}: {}", path, topology.error().message));
  return topology;
}

Result<Topology> this_host() {
  Result<Host> host = discover_host();
  if (!host) return fail(std::move(host).error());
  return Topology::of({std::move(*host)});
}

Result<std::string> topology_of(std::span<const std::string> files) {
  const Result<Topology> topology = files.empty() ? this_host() : read_topology(files.front());
  if (!topology) return fail(topology.error());
  return to_text(*topology);
}

Result<std::string> rails_of(std::span<const std::string> files) {
  const Result<Topology> topology = read_topology(files.front());
  if (!topology) return fail(topology.error());
  const Rails rails(*topology);
  std::string text;
  for (int rank = 0; rank < topology->ranks(); ++rank) {
    const Host& host = topology->hosts()[topology->host_of(rank)];
    const Place place = place_of(host, host.ranks[topology->local_rank_of(rank)]);
    text += fmt::format("rank {} on {}:", rank, host.name);
    for (const int nic : rails.nics_of(rank))
      text += fmt::format(" {} ({})", host.nics[nic].name, name_of(distance(place, host.nics[nic].place)));
    text += rails.nics_of(rank).empty() ? " no NIC\n" : "\n";
  }
  return text;
}

Result<std::string> settings_here(std::span<const std::string>) {
  const Result<Settings> settings = read_settings();
  if (!settings) return fail(settings.error());
  std::string text;
  for (const Setting& setting : every_setting()) {
    const std::string value = text_of(setting, *settings);
    text += fmt::format("{} {}={}\n", value == text_of(setting, Settings{}) ? ' ' : '*', setting.variable, value);
  }
  return text;
}

struct Command {
  std::string_view name;
  size_t fewest_files, most_files;
  Result<std::string> (*run)(std::span<const std::string> files);
};

constexpr Command kCommands[] = {{"topology", 0, 1, topology_of}, {"rails", 1, 1, rails_of}, {"settings", 0, 0, settings_here}};

int run(std::span<const std::string> words) {
  if (words.size() == 1 && (words[0] == "--help" || words[0] == "-h")) {
    std::cout << kUsage;
    return 0;
  }
  for (const Command& command : kCommands) {
    if (words.empty() || words[0] != command.name) continue;
    const auto files = words.subspan(1);
    if (files.size() < command.fewest_files || files.size() > command.most_files) break;
    const Result<std::string> text = command.run(files);
    if (!text) {
      std::cerr << "fccl-info: " << text.error().message << '\n';
      return 1;
    }
    std::cout << *text << std::flush;
    return std::cout ? 0 : 1;
  }
  if (!words.empty()) std::cerr << "fccl-info: there is no command '" << fmt::format("{}", fmt::join(words, " ")) << "'\n";
  std::cerr << kUsage;
  return 2;
}

}  // namespace
}  // namespace fccl

int main(int count, char** words) {
  const std::vector<std::string> arguments(words + 1, words + count);
  return fccl::run(arguments);
}
