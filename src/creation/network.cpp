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

bool take_address(Reader& reader, Introduction::Rail& rail) {
  const std::string_view address = reader.raw(reader.number<uint8_t>());
  if (address.size() > rail.address.size()) return false;
  rail.address_bytes = static_cast<uint32_t>(address.size());
  std::memcpy(rail.address.data(), address.data(), address.size());
  return reader.good();
}

// What an introduction says of the rank's endpoint. These return nothing for bytes that `write` does not make.
std::optional<Introduction> take_endpoint(Reader& reader) {
  Introduction introduction;
  introduction.write_bytes = reader.small_number();
  introduction.immediate_bits = reader.small_int();
  introduction.rails = reader.small_int();
  if (introduction.rails > Introduction::kMostRails) return std::nullopt;
  for (int32_t rail = 0; rail < introduction.rails; ++rail)
    if (!take_address(reader, introduction.rail[static_cast<size_t>(rail)])) return std::nullopt;
  if (!reader.good()) return std::nullopt;
  return introduction;
}

// Completes the introduction of a lane, which has what is said of the endpoint.
bool take_lane(Reader& reader, Introduction& introduction) {
  introduction.members = reader.small_int();
  introduction.window = reader.small_int();
  introduction.slot_bytes = reader.small_number();
  introduction.payload_bytes = reader.small_number();
  introduction.first_channel = reader.number<uint32_t>();
  introduction.token = reader.number<uint64_t>();
  for (Introduction::Rail& rail : std::span(introduction.rail).first(static_cast<size_t>(introduction.rails)))
    rail.landing = {reader.number<uint64_t>(), reader.number<uint64_t>()};
  return reader.good();
}

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

std::optional<RankEnd> take_rank(Reader& reader, bool has_column) {
  const auto endpoint = take_endpoint(reader);
  if (!endpoint) return std::nullopt;
  RankEnd end{*endpoint, {}};
  if (!take_lane(reader, end.transfers)) return std::nullopt;
  const auto place = take_place(reader);
  if (!place) return std::nullopt;
  end.meeting_place = *place;
  if (!has_column) return end;
  auto network = take_end(reader);
  if (!network) return std::nullopt;
  end.column = ColumnEnd{std::move(*network)};
  for (Introduction& lane : end.column->lanes) {
    lane = *endpoint;
    if (!take_lane(reader, lane)) return std::nullopt;
  }
  return end;
}

using Describe = std::function<std::string(int rank)>;

Result<void> take_part(Network& network, const NetworkEnd& end, int rank, int first, const Describe& describe) {
  if (network.provider.empty()) network.provider = end.provider;
  if (end.provider != network.provider)
    return fail(fcclInvalidUsage,
                fmt::format("{} takes {} between hosts, but {} takes {}, and all ranks must take the same: set FCCL_TRANSPORT "
                            "to a provider that all hosts have, or see to it that they have the better one; set "
                            "FCCL_TRANSPORT_PLUGIN on all hosts or on none",
                            describe(first), network.provider, describe(rank), end.provider));
  network.rails = std::min(network.rails, end.rails);
  network.costs = highest(network.costs, end.costs);
  return {};
}

void write(Writer& writer, const NetworkEnd& end) {
  writer.short_text(end.provider);
  writer.number(int32_t{end.rails});
  for (const double cost :
       {end.costs.latency, end.costs.message, end.costs.wire_byte, end.costs.added_byte, end.costs.host_byte})
    write(writer, cost);
}

std::span<const Introduction::Rail> rails_of(const Introduction& introduction) {
  return std::span(introduction.rail).first(static_cast<size_t>(introduction.rails));
}

// All ranks hear of all, so the bytes are few: most numbers are small, and most addresses fill little of their room.
void write_endpoint(Writer& writer, const Introduction& introduction) {
  writer.small_number(introduction.write_bytes);
  writer.small_number(static_cast<uint32_t>(introduction.immediate_bits));
  writer.small_number(static_cast<uint32_t>(introduction.rails));
  for (const Introduction::Rail& rail : rails_of(introduction))
    writer.short_text({reinterpret_cast<const char*>(rail.address.data()), rail.address_bytes});
}

void write_lane(Writer& writer, const Introduction& introduction) {
  for (const int32_t number : {introduction.members, introduction.window}) writer.small_number(static_cast<uint32_t>(number));
  writer.small_number(introduction.slot_bytes);
  writer.small_number(introduction.payload_bytes);
  writer.number(introduction.first_channel);
  writer.number(introduction.token);
  for (const Introduction::Rail& rail : rails_of(introduction)) {
    writer.number(rail.landing.address);
    writer.number(rail.landing.key);
  }
}

void write(Writer& writer, const Address& place) {
  writer.number(uint8_t{place.v6});
  writer.raw({reinterpret_cast<const char*>(place.bytes.data()), size_t{place.v6 ? 16u : 4u}});
  writer.number(place.port);
}

tl::unexpected<Error> refuse_bytes() { return fail(fcclInternalError, "a host told lanes that make no sense"); }

}  // namespace

void append(std::string& bytes, const RankEnd& end) {
  Writer writer;
  write_endpoint(writer, end.transfers);
  write_lane(writer, end.transfers);
  write(writer, end.meeting_place);
  if (end.column) {
    write(writer, end.column->network);
    for (const Introduction& lane : end.column->lanes) write_lane(writer, lane);
  }
  bytes += writer.bytes();
}

Result<Network> read_network(const std::vector<std::string>& by_host, const Columns& columns, const Describe& describe) {
  if (by_host.size() != static_cast<size_t>(columns.hosts()))
    return fail(fcclInternalError, "not every host told of its lanes");
  const auto ranks = static_cast<size_t>(columns.ranks());
  Network network{.provider = {},
                  .rails = std::numeric_limits<int>::max(),
                  .costs = {},
                  .introductions = {},
                  .transfers = std::vector<Introduction>(ranks),
                  .meeting_places = std::vector<Address>(ranks)};
  for (int host = 0; host < columns.hosts(); ++host) {
    Reader rest(by_host[static_cast<size_t>(host)]);
    for (int column = 0; const int rank : columns.ranks_of(host)) {
      const auto end = take_rank(rest, column < columns.columns());
      if (!end) return refuse_bytes();
      if (end->column) FCCL_TRY(take_part(network, end->column->network, rank, columns.ranks_of(0).front(), describe));
      if (end->column && column == columns.local())
        for (size_t lane = 0; lane < end->column->lanes.size(); ++lane)
          network.introductions[lane].push_back(end->column->lanes[lane]);
      network.transfers[static_cast<size_t>(rank)] = end->transfers;
      network.meeting_places[static_cast<size_t>(rank)] = end->meeting_place;
      ++column;
    }
    if (!rest.complete()) return refuse_bytes();
  }
  return network;
}

}  // namespace fccl::core
