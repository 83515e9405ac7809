// Writes and reads the bytes that leaders pass on.
#include "creation/network.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>
#include <optional>
#include <string_view>

#include "topology/costs.h"
#include "topology/provider.h"

namespace fccl::core {
namespace {

struct EndBytes {
  std::array<char, kMostProviderLetters + 1> provider{};  // padded with zeros
  int32_t rails = 0;
  int32_t padding = 0;
  CostConstants costs{};
};

struct PlaceBytes {
  std::array<uint8_t, 16> bytes{};
  uint16_t port = 0;
  uint16_t v6 = 0;
};

// Returns the largest of each constant, which is the same on all ranks.
CostConstants highest(const CostConstants& a, const CostConstants& b) {
  return {std::max(a.latency, b.latency), std::max(a.message, b.message), std::max(a.wire_byte, b.wire_byte),
          std::max(a.added_byte, b.added_byte), std::max(a.host_byte, b.host_byte)};
}

// Takes the next end off the bytes; returns nothing for bytes that append does not make.
std::optional<NetworkEnd> take_end(std::string_view& bytes) {
  EndBytes end;
  if (bytes.size() < sizeof end) return std::nullopt;
  std::memcpy(&end, bytes.data(), sizeof end);
  bytes.remove_prefix(sizeof end);
  const std::string_view provider(end.provider.data(), ::strnlen(end.provider.data(), end.provider.size()));
  if (!is_provider_name(provider) || end.rails < 1 || !fault_of(end.costs).empty()) return std::nullopt;
  return NetworkEnd{std::string(provider), end.rails, end.costs};
}

// Takes the next introduction off the bytes; returns nothing for bytes that append does not make.
std::optional<Introduction> take_introduction(std::string_view& bytes) {
  Introduction introduction;
  if (bytes.size() < offsetof(Introduction, rail)) return std::nullopt;
  std::memcpy(static_cast<void*>(&introduction), bytes.data(), offsetof(Introduction, rail));
  if (introduction.rails < 0 || introduction.rails > Introduction::kMostRails) return std::nullopt;
  const size_t size = offsetof(Introduction, rail) + static_cast<size_t>(introduction.rails) * sizeof(Introduction::Rail);
  if (bytes.size() < size) return std::nullopt;
  std::memcpy(static_cast<void*>(&introduction), bytes.data(), size);
  bytes.remove_prefix(size);
  return introduction;
}

// Takes the next place off the bytes; returns nothing for bytes that append does not make.
std::optional<Address> take_place(std::string_view& bytes) {
  PlaceBytes place;
  if (bytes.size() < sizeof place) return std::nullopt;
  std::memcpy(&place, bytes.data(), sizeof place);
  bytes.remove_prefix(sizeof place);
  if (place.v6 > 1 || place.port == 0) return std::nullopt;
  return Address{place.v6 == 1, place.bytes, place.port};
}

tl::unexpected<Error> refuse_bytes() { return fail(fcclInternalError, "a host told lanes that make no sense"); }

}  // namespace

void append(std::string& bytes, const NetworkEnd& end) {
  EndBytes own{.rails = end.rails, .costs = end.costs};
  end.provider.copy(own.provider.data(), own.provider.size());
  bytes.append(reinterpret_cast<const char*>(&own), sizeof own);
}

// Appends only the rails that the introduction has.
void append(std::string& bytes, const Introduction& introduction) {
  const size_t size = offsetof(Introduction, rail) + static_cast<size_t>(introduction.rails) * sizeof(Introduction::Rail);
  bytes.append(reinterpret_cast<const char*>(&introduction), size);
}

Result<Network> read_network(const std::vector<std::string>& by_host, const Columns& columns,
                             const std::function<std::string(int rank)>& describe) {
  if (by_host.size() != static_cast<size_t>(columns.hosts()))
    return fail(fcclInternalError, "not every host told of its lanes");
  Network network{.provider = {}, .rails = std::numeric_limits<int>::max(), .costs = {}, .introductions = {}};
  for (int host = 0; host < columns.hosts(); ++host) {
    std::string_view rest = by_host[static_cast<size_t>(host)];
    for (int column = 0; column < columns.columns(); ++column) {
      const auto end = take_end(rest);
      if (!end) return refuse_bytes();
      if (network.provider.empty()) network.provider = end->provider;
      if (end->provider != network.provider)
        return fail(
            fcclInvalidUsage,
            fmt::format("{} takes {} between hosts, but {} takes {}, and all ranks must take the same: set FCCL_TRANSPORT "
                        "to a provider that all hosts have, or see to it that they have the better one; set "
                        "FCCL_TRANSPORT_PLUGIN on all hosts or on none",
                        describe(columns.ranks_of(0).front()), network.provider, describe(columns.ranks_of(host)[column]),
                        end->provider));
      network.rails = std::min(network.rails, end->rails);
      network.costs = highest(network.costs, end->costs);
      for (std::vector<Introduction>& of_lane : network.introductions) {
        const auto introduction = take_introduction(rest);
        if (!introduction) return refuse_bytes();
        if (column == columns.local()) of_lane.push_back(*introduction);
      }
    }
    if (!rest.empty()) return refuse_bytes();
  }
  return network;
}

void append(std::string& bytes, const RankEnd& end) {
  append(bytes, end.transfers);
  const PlaceBytes own{end.meeting_place.bytes, end.meeting_place.port, uint16_t{end.meeting_place.v6}};
  bytes.append(reinterpret_cast<const char*>(&own), sizeof own);
}

Result<std::vector<RankEnd>> read_rank_ends(const std::vector<std::string>& by_host, const Columns& columns) {
  std::vector<RankEnd> ends(static_cast<size_t>(columns.ranks()));
  if (by_host.size() != static_cast<size_t>(columns.hosts())) return refuse_bytes();
  for (int host = 0; host < columns.hosts(); ++host) {
    std::string_view rest = by_host[static_cast<size_t>(host)];
    for (const int rank : columns.ranks_of(host)) {
      const auto introduction = take_introduction(rest);
      const auto place = take_place(rest);
      if (!introduction || !place) return refuse_bytes();
      ends[static_cast<size_t>(rank)] = {*introduction, *place};
    }
    if (!rest.empty()) return refuse_bytes();
  }
  return ends;
}

}  // namespace fccl::core
