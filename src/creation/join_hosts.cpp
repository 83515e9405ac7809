// Exchanges addresses through the leaders, opens the lanes, and hands them to the communicator's state.
#include "creation/join_hosts.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <numeric>
#include <string_view>

#include "creation/column_nics.h"
#include "creation/init_calls.h"
#include "discovery/sys_devices.h"
#include "health/control.h"
#include "hierarchical/hierarchical_lane.h"
#include "hierarchical/phases.h"
#include "operations/communicator_state.h"
#include "operations/wait_questions.h"
#include "os/error_text.h"
#include "os/processors.h"
#include "os/random.h"
#include "os/spare_descriptor.h"
#include "sockets/socket.h"
#include "topology/costs.h"
#include "wire/endpoint.h"
#include "wire/entry.h"
#include "wire/lane.h"
#include "wire/plugin.h"
#include "wire/process_endpoint.h"

namespace fccl::core {
namespace {

// Per lane: messages of one peer that may be in flight, and the most memory for all peers' landing.
constexpr int kWindow = 8;
constexpr size_t kLandingBytes = size_t{32} << 20;
constexpr size_t kLeastSlot = 4096;
// Descriptors that a provider opens for itself, rounded up; each peer's connection adds one.
constexpr int kNetworkDescriptors = 40;
// The lane for transfers has smaller limits, since all other ranks are its peers.
constexpr int kTransferWindow = 4;
constexpr size_t kTransferLandingBytes = size_t{8} << 20;
constexpr int kTransferStages = 16;  // enough that ranks which do not take their messages leave some stages for others
// Notices of one peer that may wait, and those that may be in flight to all.
constexpr int kNotices = 16;
// The sequence starts near its wrap, so that every run passes the wrap.
constexpr uint32_t kFirstSequence = 0xfffffff0;

size_t wire_slot_bytes(const Settings& settings, const Columns& columns) {
  const size_t share = kLandingBytes / (static_cast<size_t>(columns.hosts() - 1) * kWindow);
  const size_t unit_of_each = 64 * static_cast<size_t>(columns.by_rank(0).most());
  const size_t unit_of_pairs = 8 * static_cast<size_t>(columns.by_rank(0).most()) * static_cast<size_t>(columns.most_ranks());
  const size_t least = std::max(
      {std::min(kLeastSlot, settings.wire_slot_bytes), unit_of_each, std::min(unit_of_pairs, settings.wire_slot_bytes)});
  return std::clamp(settings.wire_slot_bytes, least, std::max(least, share)) / 64 * 64;
}

size_t transfer_slot_bytes(const Settings& settings, const Columns& columns) {
  const size_t share = kTransferLandingBytes / (static_cast<size_t>(columns.ranks() - 1) * kTransferWindow);
  return std::clamp(settings.wire_slot_bytes, std::min(kLeastSlot, settings.wire_slot_bytes), std::max(kLeastSlot, share)) /
         64 * 64;
}

// Takes measured costs, or without a measurement those that the hosts' plug-ins tell.
Result<CostConstants> costs_of(const Settings& settings, const Network& network) {
  if (!settings.costs.empty()) {
    FCCL_TRY_ASSIGN(auto parsed, parse_costs(settings.costs));
    return parsed.constants;
  }
  return network.costs;
}

// Network libraries do not always report a lack of descriptors, and a peer that is not let in waits.
Result<void> check_descriptors(const Columns& columns) {
  const int wanted = kNetworkDescriptors + columns.hosts();
  const int error = lack_of_descriptors(wanted);
  if (error == 0) return {};
  return fail(system_error(error), fmt::format("cannot open the {} descriptors that the network between hosts may take: {}",
                                               wanted, error_text(error)));
}

}  // namespace

HostJoiner::HostJoiner(Joined& joined, const Settings& settings, CommunicatorState& state, InitCalls& calls,
                       const WaitLimit& limit)
    : joined_(joined),
      settings_(settings),
      state_(state),
      columns_(*state.columns),
      calls_(calls),
      limit_(limit.deadline, [&state, &limit]() -> Result<void> {
        state.control->liveness.look_for_some_deaths();
        if (auto failed = state.control->failures.first()) return fail(std::move(*failed));
        return limit.check_cancelled();
      }) {}

// Chooses the NICs that this rank uses, and lists what all ranks must know of them. All ranks of a host take part. A rank
// without a column does not take part in spreading NICs: its data goes over the NICs of the column that carries its blocks.
Result<NetworkEnd> HostJoiner::open_endpoint() {
  // A split finds the network already open.
  if (!has_process_endpoint()) FCCL_TRY(check_descriptors(columns_));
  FCCL_TRY_ASSIGN(auto offered, allowed_nics(settings_));
  std::string mine;
  if (columns_.has_column()) {
    // With a single NIC the place of the ranks does not matter.
    const auto numa = offered.nics.size() > 1 ? SysDevices().numa_node_of(allowed_processors()) : std::nullopt;
    FCCL_TRY_ASSIGN(auto described, describe_column(std::move(offered.nics), numa));
    mine = std::move(described);
  }
  FCCL_TRY_ASSIGN(auto here, exchange_here(mine));
  here.resize(static_cast<size_t>(columns_.columns()));
  FCCL_TRY_ASSIGN(auto nics, nics_of_columns(here));
  FCCL_TRY_ASSIGN(
      auto endpoint,
      endpoint_of_process(settings_.transport_plugin,
                          {.provider = offered.provider,
                           .nics = std::move(nics.names[static_cast<size_t>(columns_.carrier_of(joined_.rank))]),
                           .message_bytes = plan::payload_bytes_of(columns_.hosts()) + sizeof(Notice) + sizeof(EntryMessage)}));
  state_.endpoint = std::move(endpoint);
  return NetworkEnd{std::move(offered.provider), nics.different, offered.costs};
}

// Opens all lanes of this rank, and returns what all ranks must know of them.
Result<std::string> HostJoiner::open() {
  FCCL_TRY_ASSIGN(auto column, open_lanes());
  FCCL_TRY_ASSIGN(auto end, open_transfers());
  end.column = std::move(column);
  std::string told;
  append(told, end);
  return told;
}

// Opens this rank's lanes towards the other hosts; nothing without a column.
Result<std::optional<ColumnEnd>> HostJoiner::open_lanes() {
  FCCL_TRY_ASSIGN(auto end, open_endpoint());
  if (!columns_.has_column()) return std::nullopt;
  FCCL_TRY_ASSIGN(const auto token, random_bits());
  WireLaneShape shape{.ranks = columns_.members(),
                      .me = columns_.host(),
                      .window = kWindow,
                      .slot_bytes = wire_slot_bytes(settings_, columns_),
                      .payload_bytes = plan::payload_bytes_of(columns_.hosts()),
                      .first_sequence = kFirstSequence,
                      .token = token};
  ColumnEnd told{std::move(end)};
  for (size_t i = 0; i < inter_host_calls_.size(); ++i) {
    FCCL_TRY_ASSIGN(auto lane, WireLane::open(*state_.endpoint, shape));
    told.lanes[i] = lane->introduction();
    inter_host_calls_[i] = std::make_unique<InterHostCall>(std::move(lane));
  }
  return told;
}

// Opens the lane on which this rank reaches every rank of the other hosts, and a meeting place for a later shrink.
Result<RankEnd> HostJoiner::open_transfers() {
  FCCL_TRY_ASSIGN(const auto token, random_bits());
  std::vector<int> ranks(static_cast<size_t>(columns_.ranks()));
  std::iota(ranks.begin(), ranks.end(), 0);
  auto lane = NoticeLane::open(*state_.endpoint, {.ranks = std::move(ranks),
                                                  .me = joined_.rank,
                                                  .window = kTransferWindow,
                                                  .slot_bytes = transfer_slot_bytes(settings_, columns_),
                                                  .stages = kTransferStages,
                                                  .payload_bytes = plan::kContentBytes + sizeof(Notice),
                                                  .first_sequence = kFirstSequence,
                                                  .token = token,
                                                  .notices = kNotices,
                                                  .notices_out = kNotices});
  if (!lane) return fail(std::move(lane).error());
  transfers_ = std::move(*lane);
  FCCL_TRY_ASSIGN(auto places, MeetingPlaces::hold(settings_, joined_.id));
  RankEnd end{transfers_->wire().introduction(), places.own()};
  state_.places = std::move(places);
  return end;
}

// Ranks of this host need no connection.
Result<void> HostJoiner::connect_transfers(Network& network) {
  state_.places->learn(std::move(network.meeting_places));
  const std::span<const int> here = columns_.ranks_of(columns_.host());
  for (const int rank : here) network.transfers[static_cast<size_t>(rank)].rails = 0;
  FCCL_TRY(transfers_->wire().connect(network.transfers));
  state_.control->judge.ask_by(std::make_unique<WaitQuestions>(*state_.endpoint, transfers_->wire(), *state_.control));
  state_.transfers.span_hosts(std::move(transfers_), here);
  return {};
}

// Gives every rank of this host the bytes of each, by their places.
Result<std::vector<std::string>> HostJoiner::exchange_here(const std::string& mine) {
  const int ranks = state_.lanes[kGatherLane].lane.ranks();
  const uint64_t size = mine.size();
  std::vector<uint64_t> sizes(static_cast<size_t>(ranks));
  FCCL_TRY(calls_.exchange(&size, sizes.data(), sizeof size));
  const size_t most = std::ranges::max(sizes);
  std::string padded = mine, all(most * static_cast<size_t>(ranks), '\0');
  padded.resize(most);
  FCCL_TRY(calls_.exchange(padded.data(), all.data(), most));
  std::vector<std::string> texts;
  texts.reserve(sizes.size());
  for (size_t rank = 0; rank < sizes.size(); ++rank) texts.push_back(all.substr(rank * most, sizes[rank]));
  return texts;
}

// Does so across hosts: the leader of each host sends the others the bytes of its ranks.
Result<std::vector<std::string>> HostJoiner::exchange_by_leaders(const std::string& mine) {
  FCCL_TRY_ASSIGN(auto here, exchange_here(mine));
  std::string everything;
  if (state_.link) {
    std::string of_host;
    for (const std::string& text : here) of_host += text;
    FCCL_TRY_ASSIGN(auto all, state_.link->exchange(of_host, limit_));
    for (const std::string& text : all) {
      const uint64_t size = text.size();
      everything.append(reinterpret_cast<const char*>(&size), sizeof size);
      everything += text;
    }
  }
  // Only the leader's string is not empty.
  FCCL_TRY_ASSIGN(auto told, exchange_here(everything));
  std::vector<std::string> by_host;
  for (std::string_view rest = told.front(); rest.size() >= sizeof(uint64_t);) {
    uint64_t size;
    std::memcpy(&size, rest.data(), sizeof size);
    rest.remove_prefix(sizeof size);
    by_host.emplace_back(rest.substr(0, size));
    rest.remove_prefix(std::min<size_t>(size, rest.size()));
  }
  return by_host;
}

Result<void> HostJoiner::connect_lanes(const Network& network) {
  for (size_t lane = 0; lane < inter_host_calls_.size(); ++lane)
    if (inter_host_calls_[lane]) FCCL_TRY(inter_host_calls_[lane]->lane().connect(network.introductions[lane]));
  return {};
}

// The link may outlive the communicator, so the events hold what they use.
LinkEvents HostJoiner::link_events() {
  return {.failed = [control = state_.control](const Error& error) { control->failures.hear_of(error); },
          .gone = [control = state_.control](const Departure& departure) { control->liveness.hear_of_departure(departure); },
          .waits = [control = state_.control](const LongWait& wait) { control->judge.hear_of_wait(wait); },
          .cut = [control = state_.control](int leader, LinkEnd how) { control->liveness.hear_of_end(leader, how); },
          .unheard = [control = state_.control](int leader, int through) { control->liveness.hear_no_more(leader, through); },
          .look =
              [control = state_.control] {
                return LinkNews{control->failures.first(), control->liveness.local_departures(), control->judge.local_waits()};
              }};
}

bool HostJoiner::is_leader() const { return joined_.rank == columns_.ranks_of(columns_.host()).front(); }

Result<void> HostJoiner::meet_leaders() {
  std::vector<Member> leaders;
  leaders.reserve(static_cast<size_t>(columns_.hosts()));
  for (int host = 0; host < columns_.hosts(); ++host) leaders.push_back(joined_.members[columns_.ranks_of(host).front()]);
  std::vector<int> host_of;
  host_of.reserve(static_cast<size_t>(columns_.ranks()));
  for (int rank = 0; rank < columns_.ranks(); ++rank) host_of.push_back(columns_.host_of(rank));
  FCCL_TRY_ASSIGN(auto met, HostLink::meet({joined_.id, joined_.rank, std::move(leaders), std::move(host_of)},
                                           std::move(joined_.tcp_listener), limit_));
  state_.link = std::move(met);
  wake_ = Descriptor(::fcntl(state_.control->failures.wake().get(), F_DUPFD_CLOEXEC, 0));
  if (!wake_)
    return fail(system_error(errno), fmt::format("cannot take a second descriptor of an eventfd: {}", error_text(errno)));
  return {};
}

Result<void> HostJoiner::start_link() {
  if (!state_.link) return {};
  return state_.link->start(std::move(wake_), state_.control->liveness.local_watches(), link_events());
}

Result<void> HostJoiner::join() {
  auto joined = try_to_join();
  if (joined) return {};
  const Error error = state_.control->failures.raise(std::move(joined).error());
  if (state_.link) state_.link->tell({.failure = error});
  return fail(error);
}

Result<void> HostJoiner::try_to_join() {
  const auto name_of = [this](int rank) { return state_.control->peers.describe(rank); };
  StepClock steps;
  if (is_leader()) FCCL_TRY(meet_leaders());
  auto opened = open();
  if (!opened) return fail(opened.error().code, name_of(joined_.rank) + ": " + opened.error().message);
  state_.cost.network = steps.lap();
  FCCL_TRY_ASSIGN(const auto by_host, exchange_by_leaders(*opened));
  // All leaders have met, and hear of each other's failures.
  joined_.presence.leave();
  FCCL_TRY_ASSIGN(auto network, read_network(by_host, columns_, name_of));
  FCCL_TRY(connect_lanes(network));
  FCCL_TRY(connect_transfers(network));
  // A rank's endpoint knows its peers once it has connected to them, and drops messages from others: no lane is used before all
  // ranks have passed this point.
  FCCL_TRY(exchange_by_leaders({}));
  FCCL_TRY(span_lanes(network));
  FCCL_TRY(start_link());
  // This barrier shows that every host reaches every other.
  FCCL_TRY(calls_.barrier());
  state_.cost.hosts = steps.lap();
  return {};
}

Result<void> HostJoiner::span_lanes(const Network& network) {
  state_.rails = network.rails;
  WireSettings wire{.rails = network.rails,
                    .slot_bytes = wire_slot_bytes(settings_, columns_),
                    .host_slot_bytes = SegmentShape{columns_.most_ranks(), 0, settings_.slot_bytes}.pair_slot_bytes(),
                    .wire_type = settings_.wire_dtype == "float32" ? WireType::float32 : WireType::call};
  FCCL_TRY_ASSIGN(const auto costs, costs_of(settings_, network));
  wire.costs = costs;
  for (int lane = 0; lane < kLanes; ++lane) {
    if (const auto& call = inter_host_calls_[lane]) wire.payload_bytes = call->lane().payload_bytes();
    state_.lanes[lane].hierarchical =
        std::make_unique<HierarchicalLane>(columns_, WirePlanner(columns_, wire), std::move(inter_host_calls_[lane]));
    state_.lanes[lane].hierarchical->planner.prefer(settings_.algorithm);
  }
  return {};
}

}  // namespace fccl::core
