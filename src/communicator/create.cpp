// How a communicator comes to be: bootstrap, the segment from hand to hand, a first barrier; and split on top of it.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <span>
#include <thread>

#include "bootstrap/bootstrap.h"
#include "communicator/communicator.h"
#include "system/failure_timing.h"
#include "system/log.h"
#include "system/socket.h"

namespace fccl {
namespace {

using namespace std::chrono_literals;

// The place of the rank that makes a host's segment and hands it out.
constexpr int kLeader = 0;

// The ranks of each host, by its first rank.
std::vector<std::vector<int>> ranks_of_hosts(const std::vector<Member>& members) {
  std::vector<std::vector<int>> ranks;
  std::map<std::string_view, size_t> number;
  for (const Member& member : members) {
    const auto [host, is_new] = number.try_emplace(member.host, ranks.size());
    if (is_new) ranks.emplace_back();
    ranks[host->second].push_back(member.rank);
  }
  return ranks;
}

// For those who have the segment already and wait for the leader in the first barrier.
void tell_whom_the_leader_awaits(const Segment& segment, std::span<const int> ranks) {
  for (int place = 1; place < segment.shape().ranks; ++place)
    if (segment.state(place).get_processors().none())
      return segment.state(kLeader).set_waiting(kGatherLane, {to_ms(Clock::now()), ranks[place]});
}

// `ranks`: those of this host.
Result<std::shared_ptr<Segment>> share_segment(const Joined& joined, const SegmentShape& shape, std::span<const int> ranks,
                                               const WaitLimit& limit) {
  if (joined.rank != ranks[kLeader]) {
    auto memory = receive(joined, ranks[kLeader], limit);
    if (!memory) return fail(std::move(memory).error());
    return Segment::map(*memory, shape);
  }
  auto memory = Segment::make(shape);
  if (!memory) return fail(std::move(memory).error());
  auto segment = Segment::map(*memory, shape);
  if (!segment) return segment;
  (*segment)->initialise(static_cast<uint32_t>(kFirstNumber));
  const std::vector<int> others(ranks.begin() + 1, ranks.end());
  const auto tell_and_check = [&]() -> Result<void> {
    tell_whom_the_leader_awaits(**segment, ranks);
    return limit.check_cancelled();
  };
  FCCL_TRY(hand_out(joined, memory->get(), others, {limit.deadline, tell_and_check}));
  return segment;
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

// A rank that finds the leader gone, since that found another one dead, tells of the dead one, too.
Error name_the_dead(Error error, const std::vector<Peer>& peers) {
  for (const Peer& peer : peers)
    if (peer.watch && !peer.watch->alive())
      return {fcclRemoteError, describe(peer.member) + " died before the communicator was ready"};
  return error;
}

// Whether two ranks have to take turns on a processor. A launcher may have bound each rank to one of its own.
bool is_crowded(const Segment& segment) {
  Processors all;
  for (int rank = 0; rank < segment.shape().ranks; ++rank) all |= segment.state(rank).get_processors();
  return static_cast<size_t>(segment.shape().ranks) > all.count();
}

}  // namespace

Result<std::unique_ptr<Communicator>> Communicator::create(const UniqueId& id, int rank, int ranks,
                                                           const CreateOptions& options, const CancelCheck& cancel_check) {
  const Settings& settings = options.settings;
  const Deadline deadline = Deadline::after(settings.init_timeout);
  auto joined =
      join({id, rank, ranks, settings.agreement(), settings.host_id, settings.interface_name}, {deadline, cancel_check});
  if (!joined) return fail(std::move(joined).error());
  const auto check = [&]() -> Result<void> {
    if (cancel_check) FCCL_TRY(cancel_check());
    return joined->presence.look();
  };
  auto made = assemble(*joined, options, {deadline, check});
  if (made) return made;
  return fail(joined->presence.give_up(std::move(made).error()));
}

Result<std::unique_ptr<Communicator>> Communicator::assemble(Joined& joined, const CreateOptions& options,
                                                             const WaitLimit& limit) {
  const Settings& settings = options.settings;
  const int rank = joined.rank;
  const int ranks = static_cast<int>(joined.members.size());
  auto columns = std::make_unique<Columns>(ranks_of_hosts(joined.members), rank);
  const std::span<const int> here = columns->ranks_of(columns->host());
  auto peers = peers_of(joined.members, *columns);
  if (!peers) return fail(std::move(peers).error());
  // From here on the ranks of one host watch each other.
  if (columns->hosts() == 1) joined.presence.let_root_end();
  const SegmentShape shape{static_cast<int>(here.size()), settings.mailbox_bytes, settings.slot_bytes, ranks};
  auto segment = share_segment(joined, shape, here, limit);
  if (!segment) return fail(name_the_dead(std::move(segment).error(), *peers));
  const std::shared_ptr<Segment> shared = std::move(*segment);
  shared->state(columns->local()).set_processors(allowed_processors());
  auto memory = std::make_unique<PeerMemory>(shared, columns->local(), pids_of(joined.members, here));
  std::unique_ptr<Communicator> made(new Communicator(options, rank, std::move(columns), std::move(*peers), shared));
  // Init is over when every rank has mapped the segment.
  made->creation_ends_ = limit.deadline;
  made->control_->ask([&]() -> Result<void> {
    // Nobody may be gone yet, nor a rank that this one does not wait for: those who do may have given up for that.
    made->control_->look_for_deaths();
    return limit.check_cancelled();
  });
  FCCL_TRY(made->issue({{fcclCollBarrier, fcclInt8, ReduceOp::sum, -1, 0, Issuer::init}}, nullptr));
  made->crowded_ = is_crowded(*shared);
  // All have mapped the segment, in which they tell each other of failures.
  if (made->columns_->hosts() == 1) joined.presence.leave();
  if (made->columns_->hosts() > 1) FCCL_TRY(made->join_hosts(joined, limit));
  made->control_->ask({});
  // Where ranks take turns on processors, to wait for the readers costs more than a copy. Calls between hosts go in rounds.
  const bool attaches = settings.cross_memory_attach == "on" || (settings.cross_memory_attach == "auto" && !made->crowded_);
  if (attaches && made->columns_->hosts() == 1) {
    if (const auto reached = memory->reach_all(); !reached)
      log(LogLevel::info, reached.error().message + "; AllGather takes the ring instead");
    made->lanes_[kGatherLane].lane.attach(std::move(memory));
  }
  made->creation_ends_.reset();
  return made;
}

// Everybody learns everybody's bytes.
Result<void> Communicator::exchange(const void* mine, void* all, size_t bytes) {
  const Issuer issuer = creation_ends_ ? Issuer::init : Issuer::split;
  return issue({{fcclCollAllGather, fcclUint8, ReduceOp::sum, -1, bytes, issuer}, mine, all}, nullptr);
}

// The ranks of one color, and how they will meet.
struct Communicator::Part {
  int color;
  std::vector<int> ranks;         // of the parent, in the order of the part
  Result<Bootstrap> bootstrap{};  // of the first one alone
  fcclUniqueId id{};              // all zeros if that one could not open it

  int root() const { return ranks.front(); }
};

Result<std::unique_ptr<Communicator>> Communicator::make_part(int color, int key, const CreateOptions& options) {
  struct Choice {
    int color, key, rank;
  };
  const Choice mine{color, key, rank_};
  std::vector<Choice> all(ranks_);
  FCCL_TRY(exchange(&mine, all.data(), sizeof mine));
  std::erase_if(all, [&](const Choice& other) { return other.color != color; });
  std::sort(all.begin(), all.end(),
            [](const Choice& a, const Choice& b) { return std::tie(a.key, a.rank) < std::tie(b.key, b.rank); });
  Part part{color, {}};
  for (const Choice& choice : all) part.ranks.push_back(choice.rank);

  if (color >= 0 && part.root() == rank_) part.bootstrap = prepare_bootstrap(options.settings.interface_name);
  if (part.bootstrap) part.id = to_c(part.bootstrap->id);
  std::vector<fcclUniqueId> ids(ranks_);
  FCCL_TRY(exchange(&part.id, ids.data(), sizeof part.id));
  if (color < 0) return std::unique_ptr<Communicator>{};
  part.id = ids[part.root()];
  auto made = meet(part, options);
  if (made) return made;
  return fail(fail_split(part, std::move(made).error()));
}

Result<std::unique_ptr<Communicator>> Communicator::meet(Part& part, const CreateOptions& options) {
  if (!part.bootstrap) return fail(part.bootstrap.error());
  const bool is_root = part.root() == rank_;
  auto served = is_root ? serve_bootstrap(std::move(*part.bootstrap)) : Descriptor{};
  if (!served) return fail(std::move(served).error());
  auto id = from_c(part.id);
  if (!id) return fail(fcclRemoteError, fmt::format("{} could not open a bootstrap", control_->describe_rank(part.root())));
  const auto place = std::find(part.ranks.begin(), part.ranks.end(), rank_) - part.ranks.begin();
  const auto cancel_check = [this]() -> Result<void> {
    if (auto failed = async_error()) return fail(std::move(*failed));
    return {};
  };
  auto made = create(*id, static_cast<int>(place), static_cast<int>(part.ranks.size()), options, cancel_check);
  if (!made && is_root) shut(served->get());
  return made;
}

// A split that fails on one rank fails the parent on all; but what ended it here may be no more than that others had learned of
// the parent's failure, or that a rank is dying: its connections are closed a moment before it is seen to be dead.
Error Communicator::fail_split(const Part& part, Error error) {
  const Deadline dying = Deadline::after(error.code == fcclRemoteError ? kDyingTakes : 0ms);
  while (true) {
    if (auto failed = async_error()) return *failed;
    if (dying.passed()) break;
    std::this_thread::sleep_for(1ms);
  }
  return control_->raise({error.code, fmt::format("{} (in the part of color {}, whose ranks are counted anew from {} on)",
                                                  error.message, part.color, control_->describe_rank(part.root()))});
}

}  // namespace fccl
