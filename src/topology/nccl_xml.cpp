// Reads NCCL's XML files host by host, and keeps the first fault.
#include "topology/nccl_xml.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <pugixml.hpp>
#include <string>
#include <unordered_map>

namespace fccl::core {
namespace {

constexpr size_t kLargestFile = size_t{64} << 20;

std::string_view text_of(const pugi::xml_node& node, const char* attribute) { return node.attribute(attribute).as_string(); }

std::optional<int> number_of(const pugi::xml_node& node, const char* attribute) {
  const std::string_view text = text_of(node, attribute);
  int value = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  return fault == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

bool has_child(const pugi::xml_node& node, const char* name) { return !node.child(name).empty(); }

// PCI class codes: 0x0300xx and 0x0302xx are display and 3D controllers, 0x02xxxx is a network.
bool is_gpu(const pugi::xml_node& pci) {
  const std::string_view code = text_of(pci, "class");
  return has_child(pci, "gpu") || code.starts_with("0x0302") || code.starts_with("0x0300");
}
bool is_nic(const pugi::xml_node& pci) { return has_child(pci, "nic") || text_of(pci, "class").starts_with("0x02"); }

// Collects one host after the other. Keeps the first fault; whatever it reads after that is discarded.
class HostReader {
 public:
  Result<Topology> read(const pugi::xml_node& system) {
    for (const pugi::xml_node& cpu : system.children("cpu")) {
      open_host(std::string(text_of(cpu, "host_hash")));
      Place place;
      // NCCL writes -1 for an unknown value.
      place.numa = number_of(cpu, "numaid");
      if (place.numa == -1) place.numa.reset();
      read_children(cpu, place);
    }
    if (hosts_.empty()) refuse(system, "expected <cpu> in <system>");
    if (!fault_.empty()) return fail(fcclInvalidUsage, "cannot read this as a topology of NCCL: " + fault_);
    number_ranks();
    return Topology::of(std::move(hosts_));
  }

 private:
  void refuse(const pugi::xml_node& node, const std::string& fault) {
    if (fault_.empty()) fault_ = fmt::format("{}, at byte {}", fault, node.offset_debug());
  }

  void open_host(const std::string& hash) {
    const std::string name = hash.empty() ? "host" : hash;
    const auto [known, is_new] = numbers_.try_emplace(name, hosts_.size());
    host_ = known->second;
    if (is_new) hosts_.emplace_back().name = name;
  }

  // Recursion is bounded, because a place may have only a few bridges above it.
  void read_children(const pugi::xml_node& parent, const Place& place) {
    for (const pugi::xml_node& nic : parent.children("nic")) read_nets(nic, place);
    for (const pugi::xml_node& pci : parent.children("pci")) read_pci(pci, place);
  }

  void read_pci(const pugi::xml_node& pci, const Place& above) {
    const auto address = parse_pci_address(text_of(pci, "busid"));
    if (!address) return refuse(pci, fmt::format("expected <pci> with a busid such as 0000:10:1b.0"));
    Place place = above;
    place.pci = address;
    if (is_gpu(pci)) return read_gpu(pci, place);
    if (is_nic(pci)) return read_nic(pci, place);
    place.under.push_back(*address);
    if (place.under.size() > Topology::kMostBridges)
      return refuse(pci, fmt::format("expected at most {} <pci> inside each other", Topology::kMostBridges));
    read_children(pci, place);
  }

  void read_gpu(const pugi::xml_node& pci, const Place& place) {
    Host& host = hosts_[host_];
    const pugi::xml_node gpu = pci.child("gpu");
    const int index = number_of(gpu, "dev").value_or(static_cast<int>(host.gpus.size()));
    host.gpus.push_back({index, place});
    if (const auto rank = number_of(gpu, "rank"); rank && *rank >= 0) host.ranks.push_back({*rank, index, {}});
  }

  void read_nic(const pugi::xml_node& pci, const Place& place) {
    if (has_child(pci, "nic")) return read_nets(pci.child("nic"), place);
    hosts_[host_].nics.push_back({to_text(*place.pci), 0, place});
  }

  // Ports of one device share its name.
  void read_nets(const pugi::xml_node& nic, const Place& place) {
    for (const pugi::xml_node& net : nic.children("net")) {
      std::string name(text_of(net, "name"));
      std::vector<Nic>& nics = hosts_[host_].nics;
      if (nics.size() >= Topology::kMostDevices)
        return refuse(net, fmt::format("expected at most {} <net> in a host", Topology::kMostDevices));
      const auto has_name = [&](const Nic& each) { return each.name == name; };
      if (std::any_of(nics.begin(), nics.end(), has_name)) name += fmt::format(":{}", text_of(net, "port"));
      nics.push_back({name, std::max(0, number_of(net, "speed").value_or(0)), place});
    }
  }

  void number_ranks() {
    std::vector<Rank*> ranks;
    for (Host& host : hosts_) {
      std::sort(host.ranks.begin(), host.ranks.end(), [](const Rank& a, const Rank& b) { return a.number < b.number; });
      for (Rank& rank : host.ranks) ranks.push_back(&rank);
    }
    std::stable_sort(ranks.begin(), ranks.end(), [](const Rank* a, const Rank* b) { return a->number < b->number; });
    for (size_t i = 0; i < ranks.size(); ++i) ranks[i]->number = static_cast<int>(i);
    const auto first = [](const Host& host) { return host.ranks.empty() ? Topology::kMostRanks : host.ranks.front().number; };
    std::stable_sort(hosts_.begin(), hosts_.end(), [&](const Host& a, const Host& b) { return first(a) < first(b); });
  }

  std::vector<Host> hosts_;
  std::unordered_map<std::string, size_t> numbers_;  // the numbers of the hosts, by name
  size_t host_ = 0;                                  // the host being read
  std::string fault_;
};

}  // namespace

Result<Topology> parse_nccl_xml(std::string_view text) {
  if (text.size() > kLargestFile)
    return fail(fcclInvalidUsage, fmt::format("an NCCL topology of {} bytes is larger than {}", text.size(), kLargestFile));
  pugi::xml_document document;
  const pugi::xml_parse_result parsed = document.load_buffer(text.data(), text.size());
  if (!parsed)
    return fail(fcclInvalidUsage, fmt::format("cannot read this as a topology of NCCL: expected XML, but found at byte {}: {}",
                                              parsed.offset, parsed.description()));
  const pugi::xml_node system = document.child("system");
  if (system.empty()) return fail(fcclInvalidUsage, "cannot read this as a topology of NCCL: expected <system>");
  return HostReader().read(system);
}

}  // namespace fccl::core
