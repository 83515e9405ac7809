// How a communicator comes to span hosts: the leaders of the hosts meet, every column gets its lanes, and all is told to all.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cstring>

#include "communicator/communicator.h"
#include "communicator/process_endpoint.h"
#include "plan/costs.h"
#include "system/network_interface.h"
#include "topology/rails.h"

namespace fccl {
namespace {

constexpr bool kInternal = true;
// Messages of one peer that may be on their way, and what all peers' landing takes at most, of a lane.
constexpr int kWindow = 8;
constexpr size_t kLandingBytes = size_t{32} << 20;
constexpr size_t kLeastSlot = 4096;
constexpr size_t kPayloadBytes = 4096;
// Near the wrap, so that every run comes past it.
constexpr uint32_t kFirstSequence = 0xfffffff0;

std::vector<std::string> split_at_commas(const std::string& text) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    if (end > begin) parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

// The NICs of this host that are this column's.
Result<std::vector<std::string>> nics_of_column(const Settings& settings, const Columns& columns) {
  std::vector<std::string> names = split_at_commas(settings.nics);
  if (names.empty() && settings.transport != "efa" && settings.transport != "verbs") {
    auto found = usable_interfaces();
    if (!found) return fail(std::move(found).error());
    names = std::move(*found);
  }
  Host host;
  for (const std::string& name : names) host.nics.push_back({.name = name, .place = {}});
  for (int column = 0; column < columns.columns(); ++column) host.ranks.push_back({.number = column});
  std::vector<std::string> mine;
  const std::vector<std::vector<int>> nics = nics_of_ranks(host);
  for (const int nic : nics[columns.local()]) mine.push_back(names[nic]);
  return mine;
}

// An introduction without the rails that it does not have.
void append(std::string& text, const Introduction& introduction) {
  const size_t bytes = offsetof(Introduction, rail) + static_cast<size_t>(introduction.rails) * sizeof(Introduction::Rail);
  text.append(reinterpret_cast<const char*>(&introduction), bytes);
}

// The next one; false for what append does not make.
bool take(std::string_view& text, Introduction& introduction) {
  introduction = {};
  if (text.size() < offsetof(Introduction, rail)) return false;
  std::memcpy(static_cast<void*>(&introduction), text.data(), offsetof(Introduction, rail));
  if (introduction.rails < 0 || introduction.rails > Introduction::kMostRails) return false;
  const size_t bytes = offsetof(Introduction, rail) + static_cast<size_t>(introduction.rails) * sizeof(Introduction::Rail);
  if (text.size() < bytes) return false;
  std::memcpy(static_cast<void*>(&introduction), text.data(), bytes);
  text.remove_prefix(bytes);
  return true;
}

size_t wire_slot_bytes(const Settings& settings, const Columns& columns) {
  const size_t share = kLandingBytes / (static_cast<size_t>(columns.hosts() - 1) * kWindow);
  const size_t unit_of_each = 64 * static_cast<size_t>(columns.by_rank(0).most());
  const size_t least = std::max(std::min(kLeastSlot, settings.wire_slot_bytes), unit_of_each);
  return std::clamp(settings.wire_slot_bytes, least, std::max(least, share)) / 64 * 64;
}

}  // namespace

// What this rank opens towards the other hosts, as its column's members must know it; "" without a column.
Result<std::string> Communicator::open_lanes() {
  const Settings& settings = options_.settings;
  if (!columns_->has_column()) return std::string{};
  auto nics = nics_of_column(settings, *columns_);
  if (!nics) return fail(std::move(nics).error());
  auto endpoint = endpoint_of_process({.provider = settings.transport == "auto" ? "" : settings.transport,
                                       .nics = std::move(*nics),
                                       .message_bytes = kPayloadBytes + sizeof(EntryMessage)});
  if (!endpoint) return fail(std::move(endpoint).error());
  endpoint_ = std::move(*endpoint);
  WireLaneShape shape{.ranks = columns_->members(),
                      .me = columns_->host(),
                      .window = kWindow,
                      .slot_bytes = wire_slot_bytes(settings, *columns_),
                      .payload_bytes = kPayloadBytes,
                      .first_sequence = kFirstSequence};
  std::string introductions;
  for (std::unique_ptr<Crossing>& crossing : crossings_) {
    auto lane = WireLane::open(*endpoint_, shape);
    if (!lane) return fail(std::move(lane).error());
    crossing = std::make_unique<Crossing>(std::move(*lane));
    append(introductions, crossing->lane().introduction());
  }
  return introductions;
}

// Every rank of this host gets every one's bytes, by their places.
Result<std::vector<std::string>> Communicator::exchange_here(const std::string& mine) {
  const int ranks = lanes_[kGatherLane].lane.ranks();
  const uint64_t size = mine.size();
  std::vector<uint64_t> sizes(static_cast<size_t>(ranks));
  FCCL_TRY(exchange(&size, sizes.data(), sizeof size));
  const size_t most = std::ranges::max(sizes);
  std::string padded = mine, all(most * static_cast<size_t>(ranks), '\0');
  padded.resize(most);
  FCCL_TRY(exchange(padded.data(), all.data(), most));
  std::vector<std::string> texts;
  texts.reserve(sizes.size());
  for (size_t rank = 0; rank < sizes.size(); ++rank) texts.push_back(all.substr(rank * most, sizes[rank]));
  return texts;
}

// The same across hosts: the leader of each tells the others what those of its host have to say.
Result<std::vector<std::string>> Communicator::exchange_by_leaders(const std::string& mine, Deadline deadline,
                                                                   const StillWanted& still_wanted) {
  auto here = exchange_here(mine);
  if (!here) return fail(std::move(here).error());
  std::string everything;
  if (link_) {
    std::string of_host;
    for (const std::string& text : *here) of_host += text;
    auto all = link_->exchange(of_host, deadline, still_wanted);
    if (!all) return fail(std::move(all).error());
    for (const std::string& text : *all) {
      const uint64_t size = text.size();
      everything.append(reinterpret_cast<const char*>(&size), sizeof size);
      everything += text;
    }
  }
  // The leader's is the only one.
  auto told = exchange_here(everything);
  if (!told) return fail(std::move(told).error());
  std::vector<std::string> by_host;
  for (std::string_view rest = told->front(); rest.size() >= sizeof(uint64_t);) {
    uint64_t size;
    std::memcpy(&size, rest.data(), sizeof size);
    rest.remove_prefix(sizeof size);
    by_host.emplace_back(rest.substr(0, size));
    rest.remove_prefix(std::min<size_t>(size, rest.size()));
  }
  return by_host;
}

Result<void> Communicator::connect_lanes(const std::vector<std::string>& by_host) {
  if (!columns_->has_column()) return {};
  std::array<std::vector<Introduction>, kLanes> all;
  for (std::string_view rest : by_host)
    for (int column = 0; column < columns_->columns(); ++column)
      for (std::vector<Introduction>& of_lane : all) {
        Introduction introduction;
        if (!take(rest, introduction)) return fail(fcclInternalError, "what a host told of its lanes makes no sense");
        if (column == columns_->local()) of_lane.push_back(introduction);
      }
  if (all[0].size() != static_cast<size_t>(columns_->hosts()))
    return fail(fcclInternalError, "not every host told of its lanes");
  for (int lane = 0; lane < kLanes; ++lane)
    if (crossings_[lane]) FCCL_TRY(crossings_[lane]->lane().connect(all[lane]));
  return {};
}

// The link may outlive this communicator.
LinkEvents Communicator::link_events() {
  return {.failed = [control = control_](const Error& error) { (void)control->raise(error); },
          .gone = [control = control_](int rank, Gone how) { control->hear_of_departure(rank, how); },
          .cut = [control = control_](int leader, LinkEnd how) { control->hear_of_end(leader, how); },
          .look =
              [control = control_, link = link_.get()] {
                if (auto failed = control->failure()) link->tell_failure(*failed);
                for (const auto& [rank, fate] : control->local_fates())
                  link->tell_gone(rank, fate == Fate::left ? Gone::left : Gone::died);
              }};
}

// An event that every rank of this host can raise and its leader hears.
Result<void> Communicator::share_wake(const Joined& joined, Deadline deadline, const StillWanted& still_wanted) {
  const auto here = columns_->ranks_of(columns_->host());
  Result<Descriptor> wake = [&]() -> Result<Descriptor> {
    if (rank_ != here.front()) return receive(joined, here.front(), deadline, still_wanted);
    Descriptor made(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!made) return fail(fcclSystemError, fmt::format("cannot make an eventfd: {}", std::strerror(errno)));
    FCCL_TRY(hand_out(joined, made.get(), {here.begin() + 1, here.end()}, deadline, still_wanted));
    return made;
  }();
  if (!wake) return fail(std::move(wake).error());
  control_->wake_by(std::move(*wake));
  return {};
}

Result<void> Communicator::join_hosts(Joined& joined, Deadline deadline, const StillWanted& still_wanted) {
  auto joined_hosts = try_to_join_hosts(joined, deadline, still_wanted);
  if (joined_hosts) return {};
  const Error error = control_->raise(std::move(joined_hosts).error());
  if (link_) link_->tell_failure(error);
  return fail(error);
}

Result<void> Communicator::try_to_join_hosts(Joined& joined, Deadline deadline, const StillWanted& still_wanted) {
  const auto wanted = [&]() -> Result<void> {
    if (auto failed = async_error()) return fail(std::move(*failed));
    return still_wanted ? still_wanted() : Result<void>{};
  };
  FCCL_TRY(share_wake(joined, deadline, wanted));
  if (rank_ == columns_->ranks_of(columns_->host()).front()) {
    HostLinkRequest request{.id = joined.id, .rank = rank_, .leaders = {}, .host_of = {}};
    for (int host = 0; host < columns_->hosts(); ++host)
      request.leaders.push_back(joined.members[columns_->ranks_of(host).front()]);
    for (int rank = 0; rank < ranks_; ++rank) request.host_of.push_back(columns_->host_of(rank));
    auto met = HostLink::meet(std::move(request), std::move(joined.tcp_listener), deadline, wanted);
    if (!met) return fail(std::move(met).error());
    link_ = std::move(*met);
  }
  auto introductions = open_lanes();
  if (!introductions)
    return fail(introductions.error().code, control_->describe_rank(rank_) + ": " + introductions.error().message);
  auto by_host = exchange_by_leaders(*introductions, deadline, wanted);
  if (!by_host) return fail(std::move(by_host).error());
  // All leaders have met, and hear of each other.
  joined.presence.leave();
  FCCL_TRY(connect_lanes(*by_host));
  FCCL_TRY(span_lanes());
  if (link_) {
    Descriptor wake(::fcntl(control_->wake().get(), F_DUPFD_CLOEXEC, 0));
    FCCL_TRY(link_->start(std::move(wake), control_->local_watches(), link_events()));
  }
  // Shows that every host reaches every other.
  return issue({{fcclCollBarrier, fcclInt8, ReduceOp::sum, -1, 0, kInternal}}, nullptr);
}

Result<void> Communicator::span_lanes() {
  const Settings& settings = options_.settings;
  WireSettings wire{.payload_bytes = kPayloadBytes,
                    .slot_bytes = wire_slot_bytes(settings, *columns_),
                    .node_slot_bytes = SegmentShape{columns_->most_ranks(), 0, settings.slot_bytes}.pair_slot_bytes(),
                    .wire_type = settings.wire_dtype == "float32" ? WireType::float32 : WireType::call};
  auto costs = settings.costs.empty() ? plan::default_costs(settings.transport == "auto" ? "tcp" : settings.transport)
                                      : std::optional<plan::Constants>{};
  if (!costs) {
    auto parsed = plan::parse_costs(settings.costs);
    if (!parsed) return fail(parsed.error().code, "FCCL_COSTS: " + parsed.error().message);
    costs = *parsed;
  }
  wire.costs = *costs;
  for (int lane = 0; lane < kLanes; ++lane) {
    lanes_[lane].span = std::make_unique<Span>(*columns_, Ways(*columns_, wire), std::move(crossings_[lane]));
    lanes_[lane].span->ways.prefer(settings.algorithm);
  }
  return {};
}

}  // namespace fccl
