// How a communicator comes to be: bootstrap, the segment from hand to hand, a first barrier; and split on top of it.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <thread>

#include "communicator/bootstrap.h"
#include "communicator/communicator.h"
#include "system/log.h"
#include "system/socket.h"

namespace fccl {
namespace {

using namespace std::chrono_literals;

constexpr bool kInternal = true;
constexpr auto kDyingTakes = 100ms;
// Makes the segment and hands it out.
constexpr int kLeader = 0;

// For now all ranks share one host.
Result<void> check_one_host(const std::vector<Member>& members) {
  const Member& first = members.front();
  const auto stranger = std::find_if(members.begin(), members.end(), [&](const Member& m) { return m.host != first.host; });
  if (stranger == members.end()) return {};
  return fail(
      fcclNotImplemented,
      fmt::format("rank {} runs on {} [{}], rank {} on {} [{}]: ranks on more than one host are not implemented yet. If the "
                  "two are containers of one host, let them share the namespaces of pids and of the network, and give both the "
                  "same FCCL_HOST_ID",
                  first.rank, first.host_name, first.host, stranger->rank, stranger->host_name, stranger->host));
}

// For those who have the segment already and wait for the leader in the first barrier.
void tell_whom_the_leader_awaits(const Segment& segment) {
  for (int rank = 1; rank < segment.shape().ranks; ++rank)
    if (segment.state(rank).get_processors().none())
      return segment.state(kLeader).set_waiting(kGatherLane, {to_ms(Clock::now()), rank});
}

// How long a rank of this host may keep the others.
struct Patience {
  Deadline deadline;
  const StillWanted& still_wanted;
};

Result<std::shared_ptr<Segment>> share_segment(const Joined& joined, const SegmentShape& shape, const Patience& patience) {
  if (joined.rank != kLeader) {
    auto memory = receive(joined, kLeader, patience.deadline, patience.still_wanted);
    if (!memory) return fail(std::move(memory).error());
    return Segment::map(*memory, shape);
  }
  auto memory = Segment::make(shape);
  if (!memory) return fail(std::move(memory).error());
  auto segment = Segment::map(*memory, shape);
  if (!segment) return segment;
  (*segment)->initialise(static_cast<uint32_t>(kFirstNumber));
  std::vector<int> others(shape.ranks - 1);
  std::iota(others.begin(), others.end(), 1);
  const auto still_wanted = [&]() -> Result<void> {
    tell_whom_the_leader_awaits(**segment);
    return patience.still_wanted ? patience.still_wanted() : Result<void>{};
  };
  FCCL_TRY(hand_out(joined, memory->get(), others, patience.deadline, still_wanted));
  return segment;
}

Result<std::vector<Peer>> peers_of(const std::vector<Member>& members) {
  std::vector<Peer> peers;
  for (const Member& member : members) {
    auto watch = ProcessWatch::of(member.pid);
    if (!watch)
      return fail(watch.error().code, fmt::format("{} cannot be watched: {}", describe(member), watch.error().message));
    peers.push_back({member, std::move(*watch)});
  }
  return peers;
}

std::vector<int> pids_of(const std::vector<Member>& members) {
  std::vector<int> pids;
  pids.reserve(members.size());
  for (const Member& member : members) pids.push_back(member.pid);
  return pids;
}

// A rank that finds the leader gone, since that found another one dead, tells of the dead one, too.
Error name_the_dead(Error error, const std::vector<Peer>& peers) {
  for (const Peer& peer : peers)
    if (!peer.watch->alive()) return {fcclRemoteError, describe(peer.member) + " died before the communicator was ready"};
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
                                                           const CreateOptions& options, const StillWanted& still_wanted) {
  const Settings& settings = options.settings;
  const Deadline deadline = Deadline::after(settings.init_timeout);
  auto joined = join({id, rank, ranks, settings.agreement(), settings.host_id, still_wanted}, deadline);
  if (!joined) return fail(std::move(joined).error());
  FCCL_TRY(check_one_host(joined->members));
  auto peers = peers_of(joined->members);
  if (!peers) return fail(std::move(peers).error());
  auto segment = share_segment(*joined, {ranks, settings.mailbox_bytes, settings.slot_bytes}, {deadline, still_wanted});
  if (!segment) return fail(name_the_dead(std::move(segment).error(), *peers));
  const std::shared_ptr<Segment> shared = std::move(*segment);
  shared->state(rank).set_processors(allowed_processors());
  auto memory = std::make_unique<PeerMemory>(shared, rank, pids_of(joined->members));
  std::unique_ptr<Communicator> made(new Communicator(options, rank, std::move(*peers), shared));
  // Init is over when every rank has mapped the segment.
  made->timeout_ = std::chrono::milliseconds(std::max(1, deadline.remaining_ms()));
  made->control_.ask([&]() -> Result<void> {
    // Nobody may be gone yet, nor a rank that this one does not wait for: those who do may have given up for that.
    made->control_.look_for_deaths();
    return still_wanted ? still_wanted() : Result<void>{};
  });
  FCCL_TRY(made->issue({{fcclCollBarrier, fcclInt8, ReduceOp::sum, -1, 0, kInternal}}, nullptr));
  made->control_.ask({});
  made->crowded_ = is_crowded(*shared);
  // Where ranks take turns on processors, to wait for the readers costs more than a copy.
  if (settings.cross_memory_attach == "on" || (settings.cross_memory_attach == "auto" && !made->crowded_)) {
    if (const auto reached = memory->reach_all(); !reached)
      log(LogLevel::info, reached.error().message + "; AllGather takes the ring instead");
    made->lanes_[kGatherLane].lane.attach(std::move(memory));
  }
  made->timeout_ = settings.timeout;
  return made;
}

// Everybody learns everybody's bytes.
Result<void> Communicator::exchange(const void* mine, void* all, size_t bytes) {
  return issue({{fcclCollAllGather, fcclUint8, ReduceOp::sum, -1, bytes, kInternal}, mine, all}, nullptr);
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
  if (!id) return fail(fcclRemoteError, fmt::format("{} could not open a bootstrap", control_.describe_rank(part.root())));
  const auto place = std::find(part.ranks.begin(), part.ranks.end(), rank_) - part.ranks.begin();
  const auto still_wanted = [this]() -> Result<void> {
    if (auto failed = async_error()) return fail(std::move(*failed));
    return {};
  };
  auto made = create(*id, static_cast<int>(place), static_cast<int>(part.ranks.size()), options, still_wanted);
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
  return control_.raise({error.code, fmt::format("{} (in the part of color {}, whose ranks are counted anew from {} on)",
                                                 error.message, part.color, control_.describe_rank(part.root()))});
}

}  // namespace fccl
