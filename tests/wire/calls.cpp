// What each collective must bring, and the comparison.
#include "wire/calls.h"

#include <algorithm>
#include <atomic>

#include "plan/catalog.h"
#include "plan/price.h"
#include "unit/kernels/reference.h"

namespace fccl::testing {
namespace {

constexpr size_t kBeside = 64;  // bytes before and behind an output that must stay as they are

Signature signature_of(const Calls& calls) {
  const fcclColl_t collective = calls.way.collective;
  return {collective, calls.dtype, is_reduction(collective) ? calls.op : ReduceOp::sum,
          is_rooted(collective) ? rank_of(calls.root) : -1, calls.count};
}

bool sends_many(fcclColl_t c) { return c == fcclCollReduceScatter || c == fcclCollScatter; }
bool receives_many(fcclColl_t c) { return c == fcclCollAllGather || c == fcclCollGather; }

Bytes input_of_member(const Calls& calls, int members, int member, int iteration) {
  const size_t block = calls.count * size_of(calls.dtype);
  return input_of(rank_of(member), block * (sends_many(calls.way.collective) ? members : 1), iteration);
}

Scalar scalar_of(int member, fcclDataType_t dtype) {
  Scalar scalar;
  const Bytes bytes = input_of(100 + member, size_of(dtype), 0);
  std::copy(bytes.begin(), bytes.end(), reinterpret_cast<std::byte*>(&scalar.bits));
  return scalar;
}

// The output of a member; empty if it has none.
Bytes expected_of(const Calls& calls, int members, int member, int iteration) {
  const Signature s = signature_of(calls);
  const size_t block = s.bytes();
  std::vector<Bytes> inputs;
  std::vector<Scalar> scalars;
  for (int m = 0; m < members; ++m) {
    inputs.push_back(input_of_member(calls, members, m, iteration));
    scalars.push_back(scalar_of(m, s.dtype));
    if (s.collective == fcclCollReduceScatter) {
      const auto begin = inputs[m].begin() + static_cast<ptrdiff_t>(member * block);
      inputs[m] = Bytes(begin, begin + static_cast<ptrdiff_t>(block));
    }
  }
  const bool has_none = (s.collective == fcclCollGather || s.collective == fcclCollReduce) && member != calls.root;
  if (has_none || s.collective == fcclCollBarrier) return {};
  if (is_reduction(s.collective)) return reference_reduce(s.dtype, s.op, inputs, scalars);
  if (s.collective == fcclCollBroadcast) return inputs[calls.root];
  if (s.collective == fcclCollScatter) {
    const auto begin = inputs[calls.root].begin() + static_cast<ptrdiff_t>(member * block);
    return {begin, begin + static_cast<ptrdiff_t>(block)};
  }
  Bytes all;
  for (const Bytes& input : inputs) all.insert(all.end(), input.begin(), input.end());
  return all;
}

// Where a member's input lies within its output, or its output within its input, when it is in place.
struct Buffers {
  Bytes input, output;
  const std::byte* send;
  std::byte* recv;

  Buffers(const Calls& calls, int members, int member, int iteration)
      : input(input_of_member(calls, members, member, iteration)) {
    const size_t block = calls.count * size_of(calls.dtype);
    const size_t bytes = block * (receives_many(calls.way.collective) ? members : 1);
    output.assign(kBeside + bytes + kBeside, kPoison);
    send = input.data();
    recv = output.data() + kBeside;
    if (!calls.in_place) return;
    if (sends_many(calls.way.collective)) {
      recv = input.data() + member * block;
      return;
    }
    std::byte* own = recv + (receives_many(calls.way.collective) ? member * block : 0);
    std::copy(input.begin(), input.end(), own);
    send = own;
  }
};

void compare(const Calls& calls, const Buffers& buffers, const Bytes& expected, const std::string& where) {
  if (!std::equal(expected.begin(), expected.end(), buffers.recv)) {
    const auto wrong = std::mismatch(expected.begin(), expected.end(), buffers.recv).first - expected.begin();
    ADD_FAILURE() << where << ": byte " << wrong << " of " << expected.size() << " is wrong";
  }
  const auto is_poison = [](std::byte b) { return b == kPoison; };
  const bool beside = std::all_of(buffers.output.begin(), buffers.output.begin() + kBeside, is_poison) &&
                      std::all_of(buffers.output.end() - kBeside, buffers.output.end(), is_poison);
  if (!beside) ADD_FAILURE() << where << ": bytes beside the output were written";
  if (expected.empty() && !calls.in_place && !std::all_of(buffers.output.begin(), buffers.output.end(), is_poison))
    ADD_FAILURE() << where << ": a member without output got one";
}

}  // namespace

bool run_calls_of(Group& group, int member, const Calls& calls) {
  const int algorithm = calls.way.algorithm == "mailbox" ? -1 : algorithm_of(calls.way.collective, calls.way.algorithm);
  for (int i = 0; i < calls.times; ++i) {
    const std::string where = name_of(calls.way) + " of " + std::to_string(calls.count) + ", member " + std::to_string(member) +
                              " of " + std::to_string(group.shape().members) + ", call " + std::to_string(i);
    Buffers buffers(calls, group.shape().members, member, i);
    const Call call{signature_of(calls), buffers.send, buffers.recv, scalar_of(member, calls.dtype)};
    const auto outcome = group.call(member, call, calls.first_number + static_cast<uint64_t>(i), algorithm, calls.lane);
    if (!outcome) {
      ADD_FAILURE() << where << ": " << outcome.error().message;
      return false;
    }
    if (!outcome->agreed()) {
      ADD_FAILURE() << where << ": rank " << outcome->differing_rank << " is said to differ";
      return false;
    }
    compare(calls, buffers, expected_of(calls, group.shape().members, member, i), where);
  }
  return true;
}

bool run_calls(Group& group, const Calls& calls) {
  std::atomic<bool> good{true};
  group.run([&](int member) {
    if (!run_calls_of(group, member, calls)) good = false;
  });
  return good && !::testing::Test::HasFailure();
}

std::vector<Way> all_ways() {
  std::vector<Way> ways;
  for (const auto& algorithm : plan::kCatalog<plan::Price>) {
    // Partials of others that are handed on, and sums of members without output, are not for a wire phase.
    const std::string name = algorithm.name;
    if (algorithm.collective == fcclCollAllReduce && name == "bruck") continue;
    if (algorithm.collective == fcclCollReduce && name == "scattered") continue;
    ways.push_back({algorithm.collective, name});
  }
  for (int collective = 0; collective < fcclNumColls; ++collective)
    ways.push_back({static_cast<fcclColl_t>(collective), "mailbox"});
  return ways;
}

}  // namespace fccl::testing
