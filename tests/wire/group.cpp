// Making a group, and running its members.
#include "wire/group.h"

#include <fmt/format.h>

#include <thread>

#include "plan/catalog.h"
#include "plan/price.h"
#include "system/clock.h"

namespace fccl::testing {
namespace {

constexpr uint32_t kNearTheWrap = 0xfffffffe;

// The slow path of a test: the failure of the awaited rank, then the deadline.
struct Slow {
  WireLane& lane;
  Deadline deadline;

  static Result<void> look(void* context, const Awaited& awaited) {
    const auto& slow = *static_cast<Slow*>(context);
    if (auto failure = slow.lane.failure_of(awaited.rank); failure && !awaited.reached()) return fail(std::move(*failure));
    if (slow.deadline.passed()) return fail(fcclSystemError, fmt::format("waited too long for rank {}", awaited.rank));
    return {};
  }
};

}  // namespace

int algorithm_of(fcclColl_t collective, const std::string& name) {
  for (size_t i = 0; i < plan::kCatalog<plan::Price>.size(); ++i)
    if (plan::kCatalog<plan::Price>[i].collective == collective && plan::kCatalog<plan::Price>[i].name == name)
      return static_cast<int>(i);
  ADD_FAILURE() << "there is no algorithm " << name;
  return 0;
}

Group::Group(const GroupShape& shape, const simulated::FabricOptions& options, const Bend& bend)
    : shape_(shape), fabric_(options) {
  for (int m = 0; m < shape.members; ++m) {
    auto member = std::make_unique<Member>();
    auto transport = fabric_.open();
    if (bend) transport = bend(m, std::move(transport));
    member->endpoint = std::make_unique<Endpoint>(std::move(transport));
    WireLaneShape lane{.ranks = {},
                       .me = m,
                       .window = shape.window,
                       .slot_bytes = shape.slot_bytes,
                       .stages = shape.stages,
                       .payload_bytes = shape.payload_bytes,
                       .first_sequence = kNearTheWrap};
    for (int other = 0; other < shape.members; ++other) lane.ranks.push_back(rank_of(other));
    for (int i = 0; i < shape.lanes; ++i) {
      auto opened = WireLane::open(*member->endpoint, lane);
      if (!opened) ADD_FAILURE() << opened.error().message;
      member->lanes.push_back(std::move(*opened));
    }
    members_.push_back(std::move(member));
  }
  for (int i = 0; i < shape.lanes; ++i) {
    std::vector<Introduction> all;
    for (const auto& member : members_) all.push_back(member->lanes[i]->introduction());
    for (const auto& member : members_) {
      const auto connected = member->lanes[i]->connect(all);
      if (!connected) ADD_FAILURE() << connected.error().message;
    }
  }
}

Group::~Group() {
  run([&](int member) {
    if (members_[member]) members_[member]->endpoint->settle(Deadline::after(deadline));
  });
}

void Group::run(const std::function<void(int member)>& part) {
  std::vector<std::thread> threads;
  for (int member = 0; member < shape_.members; ++member) threads.emplace_back(part, member);
  for (std::thread& thread : threads) thread.join();
}

Result<Outcome> Group::call(int member, const Call& call, uint64_t number, int algorithm, int lane_number) {
  WireLane& lane = this->lane(member, lane_number);
  const int root = std::max(0, call.signature.root - rank_of(0));
  const plan::Group group{shape_.members, root};
  const auto& entry = plan::kCatalog<plan::Price>[static_cast<size_t>(std::max(algorithm, 0))];
  WireTask task = flat_task(call, number, group, member, algorithm < 0 ? plan::Cut::whole : entry.cut);
  task.reduce = reduce_kernel(call.signature.dtype, call.signature.op);
  plan::Steps steps;
  if (algorithm >= 0) steps = plan::steps_of(algorithm, group, member);
  task.steps = &steps;
  Phase phase = algorithm < 0 ? wire_mailbox(lane.frame, lane, task) : wire_exchange(lane.frame, lane, task);
  Slow slow{lane, Deadline::after(deadline)};
  return run_to_end(phase, {&Slow::look, &slow}, true, poll_of(lane));
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

}  // namespace fccl::testing
