// Writes the text form and parses it, line by line.
#include "topology/text.h"

#include <fmt/format.h>
#include <sodium.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

namespace fccl::core {
namespace {

constexpr std::string_view kHeadline = "fccl topology 1";
constexpr std::string_view kSpeedUnit = "Gbit/s";
constexpr int kMegabitsPerGigabit = 1000;

std::string speed_text(int megabits) {
  std::string text = fmt::format("{}.{:03}", megabits / kMegabitsPerGigabit, megabits % kMegabitsPerGigabit);
  text.resize(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text.append(kSpeedUnit);
}

std::string place_text(const Place& place) {
  std::string text;
  if (place.pci) text += fmt::format(" pci {}", to_text(*place.pci));
  if (place.numa) text += fmt::format(" numa {}", *place.numa);
  for (size_t i = 0; i < place.under.size(); ++i) text.append(i == 0 ? " under " : "/").append(to_text(place.under[i]));
  return text;
}

template <class Number = int>
std::optional<Number> number_in(std::string_view text) {
  Number value = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  // Each number has one spelling: no sign, no leading zero.
  const bool plain = !text.empty() && text.front() != '-' && (text.size() == 1 || text.front() != '0');
  return plain && fault == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

// Parses a speed such as "100Gbit/s" or "2.5Gbit/s".
std::optional<int> speed_in(std::string_view text) {
  if (!text.ends_with(kSpeedUnit)) return std::nullopt;
  text.remove_suffix(kSpeedUnit.size());
  const size_t point = text.find('.');
  const auto whole = number_in(text.substr(0, point));
  if (!whole || *whole > Topology::kMostMegabits / kMegabitsPerGigabit) return std::nullopt;
  int thousandths = 0;
  if (point != std::string_view::npos) {
    std::string digits(text.substr(point + 1));
    if (digits.empty() || digits.size() > 3 || digits.find_first_not_of("0123456789") != std::string::npos) return std::nullopt;
    digits.resize(3, '0');
    std::from_chars(digits.data(), digits.data() + digits.size(), thousandths);
  }
  return *whole * kMegabitsPerGigabit + thousandths;
}

std::optional<std::vector<PciAddress>> path_in(std::string_view text) {
  std::vector<PciAddress> path;
  while (path.size() < Topology::kMostBridges) {
    const size_t slash = text.find('/');
    const auto address = parse_pci_address(text.substr(0, slash));
    if (!address) return std::nullopt;
    path.push_back(*address);
    if (slash == std::string_view::npos) return path;
    text.remove_prefix(slash + 1);
  }
  return std::nullopt;
}

std::string_view take_word(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  const std::string_view word = line.substr(0, line.find_first_of(" \t"));
  line.remove_prefix(word.size());
  return word;
}

std::string_view take_line(std::string_view& text) {
  std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(text.size(), line.size() + 1));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

// Parses line by line and stops at the first fault; `expected_` then says what the line should contain.
class Parser {
 public:
  Result<Topology> parse(std::string_view text) {
    bool headline = false;
    for (line_number_ = 1; !text.empty(); ++line_number_) {
      std::string_view line = take_line(text), first = line;
      const std::string_view word = take_word(first);
      if (word.empty() || word.starts_with('#')) continue;
      if (!(headline ? parse_line(word, first) : line == kHeadline)) {
        if (!headline) expected_ = fmt::format("\"{}\", the first line of a topology", kHeadline);
        return fail(fcclInvalidUsage,
                    fmt::format("line {} of the topology is {}, but expected was {}", line_number_, quoted(line), expected_));
      }
      headline = true;
    }
    if (!headline)
      return fail(fcclInvalidUsage, fmt::format("the topology is empty, but expected was \"{}\" and its hosts", kHeadline));
    return Topology::of(std::move(hosts_));
  }

 private:
  bool expect(bool holds, std::string_view expected) {
    if (!holds) expected_ = expected;
    return holds;
  }

  bool parse_line(std::string_view kind, std::string_view rest) {
    const std::string_view name = take_word(rest);
    if (kind == "host") {
      if (!expect(!name.empty() && take_word(rest).empty(), "\"host NAME\"")) return false;
      hosts_.emplace_back().name = name;
      return true;
    }
    if (!expect(kind == "nic" || kind == "gpu" || kind == "rank", "a line that begins with host, nic, gpu or rank"))
      return false;
    if (!expect(!hosts_.empty(), "\"host NAME\" before its NICs, GPUs and ranks")) return false;
    if (kind == "nic") return parse_nic(name, rest);
    return kind == "gpu" ? parse_gpu(name, rest) : parse_rank(name, rest);
  }

  bool parse_nic(std::string_view name, std::string_view rest) {
    if (!expect(!name.empty() && hosts_.back().nics.size() < Topology::kMostDevices,
                fmt::format("\"nic NAME ...\", at most {} times in a host", Topology::kMostDevices)))
      return false;
    Nic nic{std::string(name), 0, {}};
    std::optional<int> speed;
    if (!parse_fields(rest, {.pci = &nic.place.pci, .numa = &nic.place.numa, .under = &nic.place.under, .speed = &speed}))
      return false;
    nic.megabits = speed.value_or(0);
    hosts_.back().nics.push_back(std::move(nic));
    return true;
  }

  bool parse_gpu(std::string_view name, std::string_view rest) {
    const auto index = number_in(name);
    if (!expect(index && hosts_.back().gpus.size() < Topology::kMostDevices,
                fmt::format("\"gpu NUMBER ...\", at most {} times in a host", Topology::kMostDevices)))
      return false;
    Gpu gpu{*index, {}};
    if (!parse_fields(rest, {.pci = &gpu.place.pci, .numa = &gpu.place.numa, .under = &gpu.place.under})) return false;
    hosts_.back().gpus.push_back(std::move(gpu));
    return true;
  }

  bool parse_rank(std::string_view name, std::string_view rest) {
    const auto number = number_in(name);
    if (!expect(number && *number < Topology::kMostRanks, fmt::format("\"rank NUMBER\" below {}", Topology::kMostRanks)))
      return false;
    Rank rank{*number, {}, {}};
    if (!parse_fields(rest, {.numa = &rank.numa, .gpu = &rank.gpu})) return false;
    hosts_.back().ranks.push_back(rank);
    return true;
  }

  // The targets of a line's fields; null for a field that the line may not have.
  struct Fields {
    std::optional<PciAddress>* pci = nullptr;
    std::optional<int>* numa = nullptr;
    std::vector<PciAddress>* under = nullptr;
    std::optional<int>* speed = nullptr;
    std::optional<int>* gpu = nullptr;
  };

  bool parse_fields(std::string_view rest, const Fields& fields) {
    for (std::string_view field = take_word(rest); !field.empty(); field = take_word(rest)) {
      const std::string_view value = take_word(rest);
      if (!parse_field(field, value, fields)) return false;
    }
    return true;
  }

  bool parse_field(std::string_view field, std::string_view value, const Fields& fields) {
    if (field == "pci" && fields.pci)
      return set(*fields.pci, parse_pci_address(value), "one address such as \"0000:10:1b.0\" after pci");
    if (field == "numa" && fields.numa) {
      const auto numa = number_in(value);
      return set(*fields.numa, numa && *numa <= Topology::kMostNuma ? numa : std::nullopt,
                 fmt::format("one number from 0 to {} after numa", Topology::kMostNuma));
    }
    if (field == "speed" && fields.speed)
      return set(*fields.speed, speed_in(value), "one speed such as \"100Gbit/s\", with at most three decimals, after speed");
    if (field == "gpu" && fields.gpu) return set(*fields.gpu, number_in(value), "one number after gpu");
    if (field == "under" && fields.under) {
      auto path = path_in(value);
      if (!expect(path && fields.under->empty(),
                  fmt::format("after under the PCI bridges above, at most {}, as in \"0000:00:01.0/0000:10:00.0\"",
                              Topology::kMostBridges)))
        return false;
      *fields.under = std::move(*path);
      return true;
    }
    return expect(false, fields.gpu     ? "the fields gpu or numa"
                         : fields.speed ? "the fields speed, pci, numa, under"
                                        : "the fields pci, numa, under");
  }

  template <class T>
  bool set(std::optional<T>& field, const std::optional<T>& value, std::string_view expected) {
    if (!expect(value && !field, expected)) return false;
    field = value;
    return true;
  }

  std::vector<Host> hosts_;
  size_t line_number_ = 0;
  std::string expected_;
};

}  // namespace

std::string quoted(std::string_view text) {
  constexpr size_t kShown = 60;
  std::string shown;
  for (const char c : text.substr(0, kShown)) shown += c >= ' ' && c <= '~' ? c : '?';
  return fmt::format("\"{}{}\"", shown, text.size() > kShown ? "..." : "");
}

std::string to_text(const Topology& topology) {
  std::string text = fmt::format("{}\n", kHeadline);
  for (const Host& host : topology.hosts()) {
    text += fmt::format("host {}\n", host.name);
    for (const Nic& nic : host.nics) {
      text += fmt::format("  nic {}", nic.name);
      if (nic.megabits > 0) text += fmt::format(" speed {}", speed_text(nic.megabits));
      text += place_text(nic.place) + '\n';
    }
    for (const Gpu& gpu : host.gpus) text += fmt::format("  gpu {}{}\n", gpu.index, place_text(gpu.place));
    for (const Rank& rank : host.ranks) {
      text += fmt::format("  rank {}", rank.number);
      if (rank.gpu) text += fmt::format(" gpu {}", *rank.gpu);
      if (rank.numa) text += fmt::format(" numa {}", *rank.numa);
      text += '\n';
    }
  }
  return text;
}

Result<Topology> parse_topology(std::string_view text) { return Parser().parse(text); }

uint64_t hash_of(const Topology& topology) {
  const std::string text = to_text(topology);
  constexpr std::array<unsigned char, crypto_shorthash_KEYBYTES> kNoKey{};
  std::array<unsigned char, crypto_shorthash_BYTES> bytes{};
  crypto_shorthash(bytes.data(), reinterpret_cast<const unsigned char*>(text.data()), text.size(), kNoKey.data());
  uint64_t hash = 0;
  for (const unsigned char byte : bytes) hash = hash << 8 | byte;
  return hash;
}

std::string first_difference(int rank, std::string_view text, int other_rank, std::string_view other_text) {
  for (size_t number = 1; !text.empty() || !other_text.empty(); ++number) {
    const auto next = [](std::string_view& rest) {
      return rest.empty() ? std::string("missing") : quoted(rest.substr(0, rest.find('\n')));
    };
    const bool both = text.empty() == other_text.empty();
    const std::string shown = next(text), other_shown = next(other_text);
    if (take_line(text) != take_line(other_text) || !both)
      return fmt::format("line {} is {} on rank {}, but {} on rank {}", number, shown, rank, other_shown, other_rank);
  }
  return {};
}

}  // namespace fccl::core
