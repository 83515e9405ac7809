// Reads this host or a file, and writes its devices and rails.
#include "fccl_info/topology_commands.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "discovery/host_topology.h"
#include "fccl_info/json_text.h"
#include "fccl_info/topology_file.h"
#include "settings/settings.h"
#include "topology/rails.h"
#include "topology/text.h"

namespace fccl::core {
namespace {

// Adds what is known of the place.
Json with_place(Json device, const Place& place) {
  if (place.pci) device["pci"] = to_text(*place.pci);
  if (place.numa) device["numa"] = *place.numa;
  if (!place.under.empty()) device["under"] = Json::array();
  for (const PciAddress& bridge : place.under) device["under"].push_back(to_text(bridge));
  return device;
}

Json json_of(const Rank& rank) {
  Json json{{"number", rank.number}};
  if (rank.gpu) json["gpu"] = *rank.gpu;
  if (rank.numa) json["numa"] = *rank.numa;
  return json;
}

Json json_of(const Host& host) {
  Json nics = Json::array(), gpus = Json::array(), ranks = Json::array();
  for (const Nic& nic : host.nics) {
    Json json{{"name", nic.name}};
    if (nic.megabits != 0) json["megabits_per_second"] = nic.megabits;
    nics.push_back(with_place(std::move(json), nic.place));
  }
  for (const Gpu& gpu : host.gpus) gpus.push_back(with_place({{"index", gpu.index}}, gpu.place));
  for (const Rank& rank : host.ranks) ranks.push_back(json_of(rank));
  return {{"name", host.name}, {"nics", std::move(nics)}, {"gpus", std::move(gpus)}, {"ranks", std::move(ranks)}};
}

std::string write(const Topology& topology, Form form) {
  if (form == Form::text) return to_text(topology);
  Json hosts = Json::array();
  for (const Host& host : topology.hosts()) hosts.push_back(json_of(host));
  return json_text({{"hosts", std::move(hosts)}});
}

}  // namespace

Result<Topology> this_host() {
  FCCL_TRY_ASSIGN(Host host, discover_host());
  return Topology::of({std::move(host)});
}

Result<std::string> describe_topology(Words words, Form form) {
  if (!words.empty()) {
    FCCL_TRY_ASSIGN(const Topology described, read_topology(words.front()));
    return write(described, form);
  }
  FCCL_TRY_ASSIGN(const Settings settings, read_settings());
  FCCL_TRY_ASSIGN(const Topology topology, this_host());
  const std::string& plugin = settings.transport_plugin;
  const std::string note =
      plugin.empty() || form == Form::json
          ? ""
          : fmt::format("# The NICs are those of this host's /sys; FCCL_TRANSPORT_PLUGIN={} may offer others.\n", plugin);
  return note + write(topology, form);
}

Result<std::string> list_rails(Words words, Form) {
  FCCL_TRY_ASSIGN(const Topology topology, read_topology(words.front()));
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

}  // namespace fccl::core
