// Writes and reads the bytes that leaders pass on.
#include "creation/network.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <string_view>

#include "channels/bytes.h"
#include "topology/costs.h"
#include "topology/provider.h"

namespace fccl::core {
namespace {

// Returns the largest of each constant, which is the same on all ranks.
CostConstants highest(const CostConstants& a, const CostConstants& b) {
  return {std::max(a.latency, b.latency), std::max(a.message, b.message), std::max(a.wire_byte, b.wire_byte),
          std::max(a.added_byte, b.added_byte), std::max(a.host_byte, b.host_byte)};
}

void write(Writer& writer, double value) { writer.number(std::bit_cast<uint64_t>(value)); }
double read_double(Reader& reader) { return std::bit_cast<double>(reader.number<uint64_t>()); }

// Takes the next end; returns nothing for bytes that append does not make.
std::optional<NetworkEnd> take_end(Reader& reader) {
  NetworkEnd end;
  end.provider = reader.short_text();
  end.rails = static_cast<int>(reader.number<int32_t>());
  for (double* cost :
       {&end.costs.latency, &end.costs.message, &end.costs.wire_byte, &end.costs.added_byte, &end.costs.host_byte})
    *cost = read_double(reader);
  if (!reader.good() || !is_provider_name(end.provider) || end.rails < 1 || !fault_of(end.costs).empty()) return std::nullopt;
  return end;
}

bool take_rail(Reader& reader, Introduction::Rail& rail) {
  const std::string_view address = reader.raw(reader.number<uint8_t>());
  if (address.size() > rail.address.size()) return false;
  rail.address_bytes = static_cast<uint32_t>(address.size());
  std::memcpy(rail.address.data(), address.data(), address.size());
  rail.landing = {reader.number<uint64_t>(), reader.number<uint64_t>()};
  return reader.good();
}

// Returns false for numbers that no int32_t can be.
bool take_small(Reader& reader, int32_t& value) {
  const uint64_t number = reader.small_number();
  value = static_cast<int32_t>(number);
  return number <= INT32_MAX;
}

// Takes the next introduction; returns nothing for bytes that append does not make.
std::optional<Introduction> take_introduction(Reader& reader) {
  Introduction introduction;
  if (!take_small(reader, introduction.members) || !take_small(reader, introduction.window)) return std::nullopt;
  for (uint64_t* bytes : {&introduction.slot_bytes, &introduction.write_bytes, &introduction.payload_bytes})
    *bytes = reader.small_number();
  if (!take_small(reader, introduction.immediate_bits)) return std::nullopt;
  introduction.first_channel = reader.number<uint32_t>();
  introduction.token = reader.number<uint64_t>();
  if (!take_small(reader, introduction.rails) || introduction.rails > Introduction::kMostRails) return std::nullopt;
  for (int32_t rail = 0; rail < introduction.rails; ++rail)
    if (!take_rail(reader, introduction.rail[static_cast<size_t>(rail)])) return std::nullopt;
  if (!reader.good()) return std::nullopt;
  return introduction;
}

// Takes the next place; returns nothing for bytes that append does not make.
std::optional<Address> take_place(Reader& reader) {
  Address place;
  const auto v6 = reader.number<uint8_t>();
  place.v6 = v6 == 1;
  const std::string_view bytes = reader.raw(place.v6 ? 16 : 4);
  std::memcpy(place.bytes.data(), bytes.data(), bytes.size());
  place.port = reader.number<uint16_t>();
  if (!reader.good() || v6 > 1 || place.port == 0) return std::nullopt;
  return place;
}

tl::unexpected<Error> refuse_bytes() { return fail(fcclInternalError, "a host told lanes that make no sense"); }

}  // namespace

void append(std::string& bytes, const NetworkEnd& end) {
  Writer writer;
  writer.short_text(end.provider);
  writer.number(int32_t{end.rails});
  for (const double cost :
       {end.costs.latency, end.costs.message, end.costs.wire_byte, end.costs.added_byte, end.costs.host_byte})
    write(writer, cost);
  bytes += writer.bytes();
}

// All ranks hear of all, so the bytes are few: most numbers are small, and most addresses fill little of their room.
void append(std::string& bytes, const Introduction& introduction) {
  Writer writer;
  for (const int32_t number : {introduction.members, introduction.window}) writer.small_number(static_cast<uint32_t>(number));
  for (const uint64_t size : {introduction.slot_bytes, introduction.write_bytes, introduction.payload_bytes})
    writer.small_number(size);
  writer.small_number(static_cast<uint32_t>(introduction.immediate_bits));
  writer.number(introduction.first_channel);
  writer.number(introduction.token);
  writer.small_number(static_cast<uint32_t>(introduction.rails));
  for (const Introduction::Rail& rail : std::span(introduction.rail).first(static_cast<size_t>(introduction.rails))) {
    writer.short_text({reinterpret_cast<const char*>(rail.address.data()), rail.address_bytes});
    writer.number(rail.landing.address);
    writer.number(rail.landing.key);
  }
  bytes += writer.bytes();
}

Result<Network> read_network(const std::vector<std::string>& by_host, const Columns& columns,
                             const std::function<std::string(int rank)>& describe) {
  if (by_host.size() != static_cast<size_t>(columns.hosts()))
    return fail(fcclInternalError, "not every host told of its lanes");
  Network network{.provider = {}, .rails = std::numeric_limits<int>::max(), .costs = {}, .introductions = {}};
  for (int host = 0; host < columns.hosts(); ++host) {
    Reader rest(by_host[static_cast<size_t>(host)]);
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
    if (!rest.complete()) return refuse_bytes();
  }
  return network;
}

void append(std::string& bytes, const RankEnd& end) {
  append(bytes, end.transfers);
  const Address& place = end.meeting_place;
  Writer writer;
  writer.number(uint8_t{place.v6});
  writer.raw({reinterpret_cast<const char*>(place.bytes.data()), size_t{place.v6 ? 16u : 4u}});
  writer.number(place.port);
  bytes += writer.bytes();
}

Result<std::vector<RankEnd>> read_rank_ends(const std::vector<std::string>& by_host, const Columns& columns) {
  std::vector<RankEnd> ends(static_cast<size_t>(columns.ranks()));
  if (by_host.size() != static_cast<size_t>(columns.hosts())) return refuse_bytes();
  for (int host = 0; host < columns.hosts(); ++host) {
    Reader rest(by_host[static_cast<size_t>(host)]);
    for (const int rank : columns.ranks_of(host)) {
      const auto introduction = take_introduction(rest);
      const auto place = take_place(rest);
      if (!introduction || !place) return refuse_bytes();
      ends[static_cast<size_t>(rank)] = {*introduction, *place};
    }
    if (!rest.complete()) return refuse_bytes();
  }
  return ends;
}

}  // namespace fccl::core
