// Parses the words, and puts the answer together.
#include "fccl_info/explain.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>
#include <vector>

#include "base/call.h"
#include "fccl_info/explain_costs.h"
#include "fccl_info/explain_json.h"
#include "fccl_info/explain_on_host.h"
#include "fccl_info/topology_file.h"
#include "fccl_info/wrong_words.h"
#include "plan/catalog.h"
#include "plan/choose.h"
#include "plan/shape.h"
#include "topology/rails.h"

namespace fccl::core {
namespace {

struct Question {
  fcclColl_t collective = fcclCollBarrier;
  double size = 0;  // size of the larger buffer
  std::string topology_file, hosts, costs, provider;
  std::string ranks, dtype;  // of one host
  bool arena = false, in_place = false;
};

// Makes "AllGather" and "all_gather" equal.
std::string plain(std::string_view name) {
  std::string letters;
  for (const char c : name)
    if (c != '_') letters += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return letters;
}

std::vector<fcclColl_t> collectives_between_hosts() {
  std::vector<fcclColl_t> found;
  for (const auto& algorithm : plan::kCatalog<plan::Price>)
    if (std::find(found.begin(), found.end(), algorithm.collective) == found.end()) found.push_back(algorithm.collective);
  return found;
}

std::vector<fcclColl_t> collectives_on_host() {
  std::vector<fcclColl_t> found;
  for (int each = 0; each < fcclCollSend; ++each)
    if (each != fcclCollBarrier) found.push_back(static_cast<fcclColl_t>(each));
  return found;
}

Result<fcclColl_t> collective_in(const std::string& word, bool on_host) {
  std::vector<std::string> names;
  for (const fcclColl_t collective : on_host ? collectives_on_host() : collectives_between_hosts()) {
    names.emplace_back(name_of(collective));
    if (plain(word) == plain(names.back())) return collective;
  }
  return wrong(fmt::format("no collective {} is called '{}'; there are {}", on_host ? "within a host" : "between hosts", word,
                           fmt::join(names, ", ")));
}

Result<fcclDataType_t> dtype_in(const std::string& word) {
  if (word.empty()) return fcclFloat32;
  std::vector<std::string> names;
  for (int each = 0; each < fcclNumTypes; ++each) {
    names.emplace_back(kDataTypes[static_cast<size_t>(each)].name);
    if (word == names.back()) return static_cast<fcclDataType_t>(each);
  }
  return wrong(fmt::format("no type is called '{}'; there are {}", word, fmt::join(names, ", ")));
}

Result<double> size_in(const std::string& word) {
  constexpr std::string_view kSuffixes = "KMG";
  double number = 0;
  const auto [end, fault] = std::from_chars(word.data(), word.data() + word.size(), number);
  std::string_view suffix(end, word.data() + word.size());
  const int order = suffix.size() == 1 ? static_cast<int>(kSuffixes.find(static_cast<char>(suffix[0] & ~0x20)) + 1) : 0;
  if (fault != std::errc() || !(number >= 0) || (!suffix.empty() && order == 0) || !(std::ldexp(number, 10 * order) < 0x1p62))
    return wrong(
        fmt::format("'{}' is not a size; a size is a number of bytes, or of 1024, 1024^2 or 1024^3 bytes with K, M or G "
                    "behind it, as in 64K",
                    word));
  return std::ldexp(number, 10 * order);
}

constexpr std::string_view kOptions[] = {"--topology", "--hosts", "--costs",    "--provider",
                                         "--ranks",    "--arena", "--in-place", "--dtype"};

// Sets the options among the words.
Result<void> set_options(Question& question, Words options) {
  for (size_t i = 0; i < options.size(); ++i) {
    const std::string& option = options[i];
    if (option == "--arena" || option == "--in-place") {
      (option == "--arena" ? question.arena : question.in_place) = true;
      continue;
    }
    std::string* value = option == "--topology"   ? &question.topology_file
                         : option == "--hosts"    ? &question.hosts
                         : option == "--costs"    ? &question.costs
                         : option == "--provider" ? &question.provider
                         : option == "--ranks"    ? &question.ranks
                         : option == "--dtype"    ? &question.dtype
                                                  : nullptr;
    if (value == nullptr) return wrong_option(option, "explain", kOptions);
    if (i + 1 == options.size() || options[i + 1].empty()) return wrong(fmt::format("{} is followed by nothing", option));
    if (!value->empty()) return wrong(fmt::format("{} is there twice", option));
    *value = options[++i];
  }
  return {};
}

Result<void> check_options(const Question& question) {
  const bool between = !question.hosts.empty() || !question.topology_file.empty();
  const bool priced = !question.costs.empty() || !question.provider.empty();
  const bool on_host = question.arena || question.in_place || !question.dtype.empty();
  if (question.ranks.empty() && !between)
    return wrong(
        "explain needs the hosts: --topology FILE, or --hosts HxR as in --hosts 4x8; or the ranks of one host, as in --ranks "
        "4");
  if (!question.ranks.empty() && between) return wrong("--ranks is about one host and excludes --hosts and --topology");
  if (!question.ranks.empty() && priced) return wrong("--costs and --provider are about hosts, but --ranks is about one");
  if (question.ranks.empty() && on_host)
    return wrong("--arena, --in-place and --dtype need --ranks: they decide within a host");
  if (!question.costs.empty() && !question.provider.empty())
    return wrong("--costs and --provider exclude each other: a provider only stands for costs");
  return {};
}

Result<Question> question_in(Words words) {
  Question question;
  FCCL_TRY(set_options(question, words.subspan(2)));
  FCCL_TRY_ASSIGN(question.collective, collective_in(words[0], !question.ranks.empty()));
  FCCL_TRY_ASSIGN(question.size, size_in(words[1]));
  FCCL_TRY(check_options(question));
  return question;
}

// Reads "4x8x32": hosts, ranks per host, NICs per host.
std::optional<std::vector<int>> counts_in(std::string_view text) {
  std::vector<int> counts;
  for (;;) {
    int count = 0;
    const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), count);
    if (fault != std::errc() || count < 1) return std::nullopt;
    counts.push_back(count);
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    if (text.empty()) return counts;
    if (text.front() != 'x' || counts.size() == 3) return std::nullopt;
    text.remove_prefix(1);
  }
}

Result<HostQuestion> host_question_in(const Question& question) {
  const auto counts = counts_in(question.ranks);
  if (!counts || counts->size() != 1 || (*counts)[0] > Topology::kMostRanks)
    return wrong(fmt::format("'{}' is not a number of ranks; expected was 1 to {}", question.ranks, Topology::kMostRanks));
  FCCL_TRY_ASSIGN(const auto dtype, dtype_in(question.dtype));
  return HostQuestion{.collective = question.collective,
                      .size = static_cast<size_t>(question.size),
                      .ranks = (*counts)[0],
                      .dtype = dtype,
                      .arena = question.arena,
                      .in_place = question.in_place};
}

Result<Topology> hosts_in(const std::string& word) {
  const auto counts = counts_in(word);
  if (!counts || counts->size() < 2 || int64_t{(*counts)[0]} * (*counts)[1] > Topology::kMostRanks)
    return wrong(fmt::format("'{}' are no hosts; expected was HxR or HxRxNICS, as in 4x8x32, with at most {} ranks in all",
                             word, Topology::kMostRanks));
  const int nics = counts->size() == 3 ? (*counts)[2] : 1;
  if (nics > static_cast<int>(Topology::kMostDevices))
    return wrong(fmt::format("{} NICs of a host are too many; at most are {}", nics, Topology::kMostDevices));
  std::vector<Host> hosts;
  for (int h = 0, rank = 0; h < (*counts)[0]; ++h) {
    Host& host = hosts.emplace_back();
    host.name = fmt::format("host{}", h);
    for (int nic = 0; nic < nics; ++nic) host.nics.push_back({.name = fmt::format("nic{}", nic), .place = {}});
    for (int local = 0; local < (*counts)[1]; ++local) host.ranks.push_back({.number = rank++});
  }
  return Topology::of(std::move(hosts));
}

// Repeats the topology's host a number of times.
Result<Topology> repeated(const Topology& machine, const std::string& word) {
  const auto counts = counts_in(word);
  if (!counts || counts->size() != 1 || int64_t{(*counts)[0]} * machine.ranks() > Topology::kMostRanks)
    return wrong(
        fmt::format("--hosts beside --topology is how many of its machine there are, as in --hosts 4, with at most {} ranks "
                    "in all, but not '{}'",
                    Topology::kMostRanks, word));
  if (machine.hosts().size() != 1)
    return wrong(fmt::format("--hosts beside --topology needs a file of one host, but it has {}", machine.hosts().size()));
  std::vector<Host> hosts(static_cast<size_t>((*counts)[0]), machine.hosts()[0]);
  for (size_t h = 0; h < hosts.size(); ++h) {
    hosts[h].name += fmt::format("-{}", h);
    for (Rank& rank : hosts[h].ranks) rank.number += static_cast<int>(h) * machine.ranks();
  }
  return Topology::of(std::move(hosts));
}

Result<Topology> topology_in(const Question& question) {
  if (question.topology_file.empty()) return hosts_in(question.hosts);
  Result<Topology> topology = read_topology(question.topology_file);
  return topology && !question.hosts.empty() ? repeated(*topology, question.hosts) : topology;
}

Result<Topology> topology_for(const Question& question) {
  Result<Topology> topology = topology_in(question);
  if (!topology) return topology;
  const std::string& name = question.topology_file.empty() ? question.hosts : question.topology_file;
  if (topology->hosts().size() < 2)
    return wrong(fmt::format("{} has {} host{}; explain is about what goes between two or more", name, topology->hosts().size(),
                             topology->hosts().size() == 1 ? "" : "s"));
  for (const Host& host : topology->hosts())
    if (host.ranks.empty() || host.nics.empty())
      return wrong(fmt::format("{}: host {} has {}, so that nothing can go there", name, host.name,
                               host.ranks.empty() ? "no ranks" : "no NICs"));
  return topology;
}

// Keeps only the ranks of two hosts that have a column, renumbered, since these share their NICs.
Topology columns_of(Host host, Host peer_host, int columns) {
  for (Host* each : {&host, &peer_host}) {
    each->ranks.resize(static_cast<size_t>(columns));
    for (int column = 0; column < columns; ++column) each->ranks[column].number = each == &host ? column : columns + column;
  }
  return *Topology::of({std::move(host), std::move(peer_host)});
}

// Lists which NICs each column of the first host uses with which of the second.
std::string rails_in_words(const Topology& topology, int columns) {
  constexpr int kShown = 16;
  const Host &host = topology.hosts()[0], &peer_host = topology.hosts()[1];
  const Rails rails(columns_of(host, peer_host, columns));
  std::string text = fmt::format("\nrails between {} and {}\n", host.name, peer_host.name);
  for (int column = 0; column < std::min(columns, kShown); ++column) {
    const int rank = host.ranks[column].number, peer = peer_host.ranks[column].number;
    std::vector<std::string> pairs;
    for (const Rail& rail : rails.between(column, columns + column))
      pairs.push_back(fmt::format("{}-{}", host.nics[rail.nic].name, peer_host.nics[rail.peer_nic].name));
    text += fmt::format("    column {}, rank {} to rank {}: {}\n", column, rank, peer, fmt::join(pairs, " "));
  }
  if (columns > kShown) text += fmt::format("    and so on, {} columns in all\n", columns);
  return text;
}

std::string verdict(const plan::Way& taken, double minimum_seconds) {
  const plan::Time& time = taken.time;
  const std::pair<double, const char*> parts[] = {
      {time.latency, "latency"}, {time.message, "messages"}, {time.wire, "the wire"}, {time.host, "the host"}};
  const auto& [largest, name] = *std::max_element(std::begin(parts), std::end(parts));
  std::string text =
      fmt::format("\n{} in {} slice{}: {:.1f} us, {:.0f} percent of it {}", taken.name, taken.slices,
                  taken.slices == 1 ? "" : "s", time.total() * 1e6, time.total() > 0 ? 100 * largest / time.total() : 0, name);
  if (minimum_seconds > 0) text += fmt::format("; {:.2f} of the least time on the wire", time.total() / minimum_seconds);
  return text + "\n";
}

std::string error_in_words(const Costs& costs) {
  if (costs.error_percent)
    return fmt::format("median error of these costs when they were measured: {:.6g} %\n", *costs.error_percent);
  return "nobody has measured how far off these costs are; NAME_perf --calibrate measures those of your hosts\n";
}

}  // namespace

Result<std::string> explain(Words words, Form form) {
  FCCL_TRY_ASSIGN(const Question question, question_in(words));
  if (!question.ranks.empty()) {
    if (form == Form::json) return wrong("explain --ranks has no --json: its reasons are sentences");
    FCCL_TRY_ASSIGN(const HostQuestion on_host, host_question_in(question));
    return explain_on_host(on_host);
  }
  FCCL_TRY_ASSIGN(const Topology topology, topology_for(question));
  FCCL_TRY_ASSIGN(const KnownCosts known, costs_for(question.costs, question.provider, plan::slowest_nic(topology)));
  const plan::Shape shape = plan::shape_of(topology, known.costs.constants);
  const bool has_blocks = has_rank_blocks(question.collective);
  const plan::Request request{question.collective, has_blocks ? question.size / shape.ranks : question.size};
  const plan::Chooser chooser(shape);
  const double minimum = plan::wire_minimum(request, shape) / shape.rails * shape.constants.wire_byte;
  if (form == Form::json) return explain_in_json({shape, chooser, request, question.size, minimum, known});
  std::string blocks;
  if (has_blocks)
    blocks = fmt::format("{:.0f} bytes in the larger buffer: a block of {:.0f} for each of {} ranks\n", question.size,
                         request.bytes, shape.ranks);
  return blocks + chooser.explain(request) + verdict(chooser.way_of(request), minimum) +
         rails_in_words(topology, shape.columns) + fmt::format("\ncosts {}: {}\n", known.origin, to_text(known.costs)) +
         error_in_words(known.costs);
}

}  // namespace fccl::core
