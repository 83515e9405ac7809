// Makes a communicator's state: bootstrap, the segment handed from rank to rank, a first barrier, the other hosts.
#include "creation/creation.h"

#include <fmt/format.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <span>
#include <vector>

#include "creation/init_calls.h"
#include "creation/join_hosts.h"
#include "creation/read_trial.h"
#include "device/device.h"
#include "health/control.h"
#include "kernels/copy.h"
#include "metrics/process_page.h"
#include "operations/communicator_state.h"
#include "os/error_text.h"
#include "os/log.h"
#include "os/processors.h"
#include "passing/descriptor_passing.h"
#include "segment/mapped_peers.h"
#include "segment/peer_memory.h"
#include "topology/columns.h"

namespace fccl::core {
namespace {

// The leader makes a host's segment and hands it out.
constexpr int kLeader = 0;

// Returns the ranks of each host.
std::vector<std::vector<int>> ranks_of_hosts(const std::vector<Member>& members) {
  std::vector<std::vector<int>> ranks;
  for (const Member& member : members) {
    const auto host = static_cast<size_t>(member.host);
    if (host >= ranks.size()) ranks.resize(host + 1);
    ranks[host].push_back(member.rank);
  }
  return ranks;
}

// Tells ranks that have the segment already, and wait for the leader in the first barrier, which rank the leader awaits.
void publish_awaited_rank(const Segment& segment, std::span<const int> ranks) {
  for (int place = 1; place < segment.shape().ranks; ++place)
    if (segment.state(place).get_processors().none())
      return segment.state(kLeader).set_waiting(kGatherLane, {to_ms(Clock::now()), ranks[place]});
}

// What the ranks of a host share: its memory and, between hosts, an event that every rank can raise and the leader waits on.
struct SharedByHost {
  std::shared_ptr<Segment> segment;
  Descriptor wake;
};

Result<SharedByHost> receive_shared(const Joined& joined, const SegmentShape& shape, int leader, bool has_wake,
                                    const WaitLimit& limit) {
  FCCL_TRY_ASSIGN(auto passed, receive_descriptors(joined, leader, has_wake ? 2 : 1, limit));
  FCCL_TRY_ASSIGN(auto segment, Segment::map(passed.front(), shape));
  return SharedByHost{std::move(segment), has_wake ? std::move(passed.back()) : Descriptor{}};
}

// `ranks`: the ranks of this host.
Result<SharedByHost> share(const Joined& joined, const SegmentShape& shape, std::span<const int> ranks, bool has_wake,
                           const WaitLimit& limit) {
  if (joined.rank != ranks[kLeader]) return receive_shared(joined, shape, ranks[kLeader], has_wake, limit);
  FCCL_TRY_ASSIGN(auto memory, Segment::make(shape));
  FCCL_TRY_ASSIGN(auto segment, Segment::map(memory, shape));
  segment->initialise(static_cast<uint32_t>(kFirstNumber));
  Descriptor wake(has_wake ? ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) : -1);
  if (has_wake && !wake) return fail(system_error(errno), fmt::format("cannot make an eventfd: {}", error_text(errno)));
  const std::vector<int> others(ranks.begin() + 1, ranks.end());
  const auto tell_and_check = [&]() -> Result<void> {
    publish_awaited_rank(*segment, ranks);
    return limit.check_cancelled();
  };
  const std::array passed{memory.get(), wake.get()};
  FCCL_TRY(send_descriptors(joined, std::span(passed).first(has_wake ? 2 : 1), others, {limit.deadline, tell_and_check}));
  return SharedByHost{std::move(segment), std::move(wake)};
}

Result<std::vector<Peer>> peers_of(const std::vector<Member>& members, const Columns& columns) {
  std::vector<Peer> peers;
  for (const Member& member : members) {
    if (columns.host_of(member.rank) != columns.host()) {
      peers.push_back({member, nullptr, -1});
      continue;
    }
    auto watch = ProcessWatch::of(member.pid);
    if (!watch)
      return fail(watch.error().code, fmt::format("{} cannot be watched: {}", describe(member), watch.error().message));
    peers.push_back({member, std::move(*watch), columns.local_of(member.rank)});
  }
  return peers;
}

std::vector<int> pids_of(const std::vector<Member>& members, std::span<const int> ranks) {
  std::vector<int> pids;
  for (const int rank : ranks) pids.push_back(members[rank].pid);
  return pids;
}

// If the leader is gone because a third rank died, this reports that rank instead.
Error blame_dead_peer(Error error, const std::vector<Peer>& peers) {
  for (const Peer& peer : peers)
    if (peer.watch && !peer.watch->alive())
      return {MessageKind::died, describe(peer.member) + " died before the communicator was ready"};
  return error;
}

// True if two ranks must share a processor. A launcher may have bound each rank to its own.
bool is_oversubscribed(const Segment& segment) {
  Processors all;
  for (int rank = 0; rank < segment.shape().ranks; ++rank) all |= segment.state(rank).get_processors();
  return static_cast<size_t>(segment.shape().ranks) > all.count();
}

tl::unexpected<Error> count_and_fail(Error error) {
  metrics::count_error(error.code, with_code(error.message, error.code));
  return fail(std::move(error));
}

// True if ranks of several processes may have to pass descriptors of GPU memory later.
bool may_lend(const CreateOptions& options, const Joined& joined) {
  const std::string& path = options.settings.cuda_path;
  const Member& own = joined.members[joined.rank];
  return options.device && options.device->limits().lends && (path == "auto" || path == "peer") &&
         std::ranges::all_of(joined.members, [&](const Member& each) { return each.host == own.host; }) &&
         std::ranges::any_of(joined.members, [&](const Member& each) { return each.pid != own.pid; });
}

}  // namespace

JoinRequest join_request(const UniqueId& id, int rank, int ranks, const CreateOptions& options) {
  return {id, rank, ranks, options.agreement(), options.settings.host_id, options.settings};
}

Result<std::unique_ptr<CommunicatorState>> create_state(const JoinRequest& request, const CreateOptions& options,
                                                        const CancelCheck& cancel_check) {
  const Deadline deadline = Deadline::after(options.settings.init_timeout);
  const Traffic before = traffic_of_process();
  StepClock steps;
  auto met = join(request, {deadline, cancel_check});
  if (!met) return count_and_fail(std::move(met).error());
  Joined& joined = *met;
  const auto check = [&]() -> Result<void> {
    if (cancel_check) FCCL_TRY(cancel_check());
    return joined.presence.look();
  };
  const double roster = steps.lap();
  auto made = Creation(joined, options, {deadline, check}).make();
  if (made) {
    (*made)->cost.roster = roster;
    (*made)->cost.traffic = traffic_of_process() - before;
    (*made)->statistics.show_init((*made)->cost.all());
    (*made)->control->failures.count_in_metrics();
    if (may_lend(options, joined)) (*made)->joined = std::move(joined);
    return made;
  }
  return count_and_fail(joined.presence.give_up(std::move(made).error()));
}

Creation::Creation(Joined& joined, const CreateOptions& options, const WaitLimit& limit)
    : joined_(joined), options_(options), limit_(limit) {}

Creation::~Creation() = default;

Result<std::unique_ptr<CommunicatorState>> Creation::make() {
  FCCL_TRY(share_memory());
  Control& control = *state_->control;
  control.judge.ask([&]() -> Result<void> {
    // At this point any rank that is gone is a failure, even one that this rank does not wait for: a rank that waits for it may
    // have given up.
    control.liveness.look_for_some_deaths();
    return limit_.check_cancelled();
  });
  FCCL_TRY(await_ranks());
  control.judge.ask({});
  map_peers();
  return std::move(state_);
}

Result<void> Creation::share_memory() {
  const Settings& settings = options_.settings;
  const int ranks = static_cast<int>(joined_.members.size());
  auto columns = std::make_unique<Columns>(ranks_of_hosts(joined_.members), joined_.rank);
  const std::span<const int> here = columns->ranks_of(columns->host());
  FCCL_TRY_ASSIGN(auto peers, peers_of(joined_.members, *columns));
  // From here on the ranks of one host watch each other.
  if (columns->hosts() == 1) joined_.presence.let_root_end();
  const SegmentShape shape{static_cast<int>(here.size()), settings.mailbox_bytes, settings.slot_bytes, ranks};
  auto shared = share(joined_, shape, here, columns->hosts() > 1, limit_);
  if (!shared) return fail(blame_dead_peer(std::move(shared).error(), peers));
  segment_ = std::move(shared->segment);
  segment_->state(columns->local()).set_processors(allowed_processors());
  const std::vector<int> pids = pids_of(joined_.members, here);
  memory_ = std::make_unique<PeerMemory>(segment_, columns->local(), pids);
  auto control = std::make_shared<Control>(options_.name, joined_.rank, std::move(peers), segment_);
  control->failures.wake_by(std::move(shared->wake));
  state_ = std::make_unique<CommunicatorState>(std::move(columns), std::move(control), segment_, settings.timeout);
  state_->statistics.show(options_.name, joined_.rank, ranks, pids);
  state_->control->judge.show_waits_by(state_->statistics);
  state_->cost.segment = steps_.lap();
  state_->cost.shared_bytes = shape.total_bytes();
  state_->cost.local_ranks = shape.ranks;
  return {};
}

// Awaits the ranks of this host first: a rank is ready when it has mapped the segment, in which they tell each other of
// failures.
Result<void> Creation::await_ranks() {
  InitCalls calls(*state_, limit_.deadline);
  FCCL_TRY(calls.barrier());
  state_->oversubscribed = is_oversubscribed(*segment_);
  if (state_->oversubscribed)
    for (LaneQueue& queue : state_->lanes) queue.lane.use_long_boxes();
  FCCL_TRY(choose_ways(calls));
  // The ranks of all hosts must count calls alike, and only some hosts have ranks that try.
  state_->number = kFirstNumber + 1;
  state_->cost.barrier = steps_.lap();
  if (state_->columns->hosts() > 1) return HostJoiner(joined_, options_.settings, *state_, calls, limit_).join();
  joined_.presence.leave();
  return {};
}

// If ranks take turns on processors, waiting for the readers costs more than a copy. Between hosts collectives go in rounds,
// and only sent data is read.
Result<void> Creation::choose_ways(InitCalls& calls) {
  const std::string& wanted = options_.settings.cross_memory_attach;
  const int ranks = segment_->shape().ranks;
  if (ranks == 1) return {};
  const bool attaches = wanted == "on" || (wanted == "auto" && !state_->oversubscribed);
  Reach &gathers = state_->lanes[kGatherLane].lane.reach, &pairs = state_->lanes[kPairLane].lane.reach;
  const std::shared_ptr<PeerMemory> memory = std::move(memory_);
  if (attaches) {
    if (const auto reached = memory->reach_all(); !reached)
      log(LogLevel::info,
          reached.error().message + "; AllGather and AlltoAll take the ring instead, and what is sent goes through slots");
    gathers.attach(memory, kTuning.least_gathered);
    pairs.attach(memory, kTuning.least_exchanged);
  }
  Gains gains;
  const bool tries = !state_->oversubscribed && ranks <= kTuning.most_tried_ranks;
  if (tries) {
    FCCL_TRY_ASSIGN(gains, try_ways(calls, state_->lanes[kPairLane].lane));
    pairs.attaching.least_block = kTuning.least_exchanged;
    const CopyBytes put = gains.streaming >= kTuning.streaming_gains ? stream_bytes : copy_bytes;
    for (LaneQueue& queue : state_->lanes) queue.lane.slots.put = put;
    state_->transfers.put = put;
  }
  if (attaches) read_peers(memory, tries ? std::optional(gains.reading) : std::nullopt);
  return {};
}

// `gain`: of the trial of reading, if there was one.
void Creation::read_peers(const std::shared_ptr<const PeerMemory>& memory, std::optional<double> gain) {
  Reach &gathers = state_->lanes[kGatherLane].lane.reach, &pairs = state_->lanes[kPairLane].lane.reach;
  size_t least_sent = kTuning.least_exchanged;
  if (options_.settings.cross_memory_attach == "auto") {
    if (gain.value_or(0) >= kTuning.far_faster)
      for (Reach* reach : {&gathers, &pairs}) reach->attaching.past_caches = true;
    if (gain && *gain <= 1) gathers.attaching.is_open = false;
    if (gain.value_or(0) <= 1) {
      pairs.attaching.is_open = false;
      least_sent = SIZE_MAX;
    }
  }
  state_->transfers.read_from(memory, least_sent);
  if (state_->columns->hosts() > 1)
    for (LaneQueue& queue : state_->lanes) queue.lane.reach.attaching.is_open = false;
}

// Maps nothing before a rank offers memory of its arena in a call.
void Creation::map_peers() {
  const Columns& columns = *state_->columns;
  if (options_.settings.mapped != "on" || columns.hosts() > 1) return;
  for (LaneQueue& queue : state_->lanes)
    queue.lane.reach.mapped_peers =
        std::make_unique<MappedPeers>(segment_, columns.local(), pids_of(joined_.members, columns.ranks_of(columns.host())));
}

}  // namespace fccl::core
