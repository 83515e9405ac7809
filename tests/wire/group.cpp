// Making a group, and running its members.
#include "wire/group.h"

#include <fmt/format.h>

#include <thread>

#include "os/clock.h"

namespace fccl::core::testing {
namespace {

constexpr uint32_t kNearTheWrap = 0xfffffffe;

// The slow path of a test: a call that differs, the failure of the awaited rank, then the deadline.
struct Slow {
  InterHostCall* inter_host_call;
  Deadline deadline;

  static Result<void> look(void* context, const Awaited& awaited) {
    const auto& slow = *static_cast<Slow*>(context);
    int rank = awaited.rank;
    if (slow.inter_host_call != nullptr) {
      if (slow.inter_host_call->differing_rank() >= 0) return fail(fcclInvalidUsage, "a call differs");
      if (rank == InterHostCall::kWire) rank = slow.inter_host_call->awaited_rank();
      if (auto failure = slow.inter_host_call->lane().failure_of(rank); failure && !awaited.reached())
        return fail(std::move(*failure));
    }
    if (slow.deadline.passed()) return fail(fcclSystemError, fmt::format("waited too long for rank {}", rank));
    return {};
  }
};

}  // namespace

Group::Group(const GroupShape& shape, const simulated::FabricOptions& options, const Bend& bend)
    : shape_(shape), fabric_(options) {
  if (shape_.ranks.empty()) shape_.ranks.assign(static_cast<size_t>(shape_.members), 1);
  int rank = 0;
  for (const int ranks : shape_.ranks) {
    hosts_.emplace_back();
    for (int i = 0; i < ranks; ++i) hosts_.back().push_back(rank++);
    const SegmentShape segment{ranks, 256, shape_.host_slot_bytes, shape_.size()};
    auto memory = Segment::make(segment);
    auto mapped = memory ? Segment::map(*memory, segment) : Result<std::shared_ptr<Segment>>(fail(memory.error()));
    if (!mapped) ADD_FAILURE() << mapped.error().message;
    (*mapped)->initialise(kNearTheWrap);
    segments_.push_back(std::move(*mapped));
  }
  for (int i = 0; i < shape_.size(); ++i) members_.push_back(make_member(i, bend));
  for (int lane = 0; lane < shape_.lanes; ++lane) connect(lane);
}

std::unique_ptr<Group::Member> Group::make_member(int rank, const Bend& bend) {
  auto member = std::make_unique<Member>();
  member->columns = std::make_unique<Columns>(hosts_, rank);
  const Columns& columns = *member->columns;
  if (columns.has_column()) {
    auto transport = fabric_.open();
    if (bend) transport = bend(rank, std::move(transport));
    member->endpoint = std::make_unique<Endpoint>(std::move(transport), shape_.polled_by);
  }
  const WireSettings settings{
      .payload_bytes = shape_.payload_bytes,
      .slot_bytes = shape_.slot_bytes,
      .host_slot_bytes = SegmentShape{columns.most_ranks(), 256, shape_.host_slot_bytes}.pair_slot_bytes(),
      .wire_type = shape_.wire_type};
  for (int i = 0; i < shape_.lanes; ++i) {
    const auto id = static_cast<LaneId>(i);
    auto side = std::make_unique<Side>(segments_[columns.host()], id, columns.local(), hosts_[columns.host()], kNearTheWrap);
    side->hierarchical = std::make_unique<HierarchicalLane>(columns, WirePlanner(columns, settings), nullptr);
    if (columns.has_column()) {
      auto opened = WireLane::open(*member->endpoint, {.ranks = columns.members(),
                                                       .me = columns.host(),
                                                       .window = shape_.window,
                                                       .slot_bytes = shape_.slot_bytes,
                                                       .stages = shape_.stages,
                                                       .payload_bytes = shape_.payload_bytes,
                                                       .first_sequence = kNearTheWrap,
                                                       .token = 0x6b5f3e2d1c0b9a80u + static_cast<uint64_t>(rank)});
      if (!opened) ADD_FAILURE() << opened.error().message;
      side->hierarchical->inter_host_call = std::make_unique<InterHostCall>(std::move(*opened));
    }
    member->sides.push_back(std::move(side));
  }
  return member;
}

void Group::connect(int lane) {
  for (int column = 0; column < members_.front()->columns->columns(); ++column) {
    std::vector<Introduction> all;
    for (const auto& ranks : hosts_) all.push_back(this->lane(ranks[column], lane).introduction());
    for (const auto& ranks : hosts_) {
      const auto connected = this->lane(ranks[column], lane).connect(all);
      if (!connected) ADD_FAILURE() << connected.error().message;
    }
  }
}

Group::~Group() {
  run([&](int rank) {
    if (members_[rank] && members_[rank]->endpoint) members_[rank]->endpoint->settle(Deadline::after(deadline));
  });
}

void Group::run(const std::function<void(int rank)>& part) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < shape_.size(); ++rank) threads.emplace_back(part, rank);
  for (std::thread& thread : threads) thread.join();
}

Group::Begun Group::begin(int rank, const Call& call, uint64_t number, const std::string& algorithm, int lane) {
  Side& side = *members_[rank]->sides[lane];
  side.hierarchical->planner.prefer(algorithm);
  return {across_hosts(side.lane.frame, side.lane, *side.hierarchical, {call, number, nullptr}),
          poll_of(*side.hierarchical, call.signature.bytes()), side.hierarchical->inter_host_call.get()};
}

Result<Outcome> Group::call(int rank, const Call& call, uint64_t number, const std::string& algorithm, int lane) {
  Begun begun = begin(rank, call, number, algorithm, lane);
  Slow slow{begun.inter_host_call, Deadline::after(deadline)};
  while (!begun.phase.resume()) {
    const auto reached = await(begun.phase.awaited(), {&Slow::look, &slow}, {.oversubscribed = true}, begun.network);
    if (reached) continue;
    if (slow.inter_host_call != nullptr && slow.inter_host_call->differing_rank() >= 0)
      return Outcome{Differs{slow.inter_host_call->differing_rank()}};
    return fail(reached.error());
  }
  return begun.phase.outcome();
}

Bytes input_of(int rank, size_t bytes, int iteration) {
  Bytes input(bytes);
  for (size_t i = 0; i < bytes; ++i) {
    uint64_t x = (static_cast<uint64_t>(rank) << 40) ^ (static_cast<uint64_t>(iteration) << 52) ^ i;
    x *= 0x9e3779b97f4a7c15ULL;
    x ^= x >> 29;
    x *= 0xbf58476d1ce4e5b9ULL;
    input[i] = static_cast<std::byte>(x >> 56);
  }
  return input;
}

}  // namespace fccl::core::testing
