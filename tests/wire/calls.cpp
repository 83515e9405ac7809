// What each collective must bring, and the comparison.
#include "wire/calls.h"

#include <algorithm>
#include <atomic>

#include "oracle.h"
#include "plan/catalog.h"
#include "plan/price.h"
#include "unit/kernels/reference.h"

namespace fccl::testing {
namespace {

constexpr size_t kBeside = 64;  // bytes before and behind an output that must stay as they are

Signature signature_of(const Calls& calls) {
  const fcclColl_t collective = calls.way.collective;
  return {collective, calls.dtype, is_reduction(collective) ? calls.op : ReduceOp::sum, is_rooted(collective) ? calls.root : -1,
          collective == fcclCollBarrier ? 0 : calls.count};
}

Bytes input_of_rank(const Calls& calls, int ranks, int rank, int iteration) {
  const size_t block = calls.count * size_of(calls.dtype);
  return input_of(rank, block * static_cast<size_t>(input_blocks(calls.way.collective, ranks)), iteration);
}

Scalar scalar_of(int rank, fcclDataType_t dtype) {
  Scalar scalar;
  const Bytes bytes = input_of(100 + rank, size_of(dtype), 0);
  std::copy(bytes.begin(), bytes.end(), reinterpret_cast<std::byte*>(&scalar.bits));
  return scalar;
}

// The output of a rank; empty if it has none.
Bytes expected_of(const Calls& calls, Group& group, int rank, int iteration) {
  const Signature s = signature_of(calls);
  const int ranks = group.shape().size();
  Bytes all;
  for (int block = 0; block < output_blocks(s.collective, ranks); ++block) {
    std::vector<Bytes> given;
    std::vector<Scalar> scalars;
    for (const Source& source : sources_of(s.collective, rank, block, ranks, calls.root)) {
      const Bytes input = input_of_rank(calls, ranks, source.rank, iteration);
      const auto begin = input.begin() + static_cast<ptrdiff_t>(static_cast<size_t>(source.block) * s.bytes());
      given.emplace_back(begin, begin + static_cast<ptrdiff_t>(s.bytes()));
      scalars.push_back(scalar_of(source.rank, s.dtype));
    }
    if (given.empty()) return {};
    const Hosts hosts{group.shape().ranks, group.shape().wire_type == WireType::float32};
    const Bytes made = reduces(s.collective) ? reference_reduce(s.dtype, s.op, given, scalars, hosts) : given[0];
    all.insert(all.end(), made.begin(), made.end());
  }
  return all;
}

// Where a rank's input lies within its output, or its output within its input, when it is in place.
struct Buffers {
  Bytes input, output;
  const std::byte* send;
  std::byte* recv;

  Buffers(const Calls& calls, int ranks, int rank, int iteration) : input(input_of_rank(calls, ranks, rank, iteration)) {
    const size_t block = calls.count * size_of(calls.dtype);
    const size_t bytes = block * static_cast<size_t>(output_blocks(calls.way.collective, ranks));
    output.assign(kBeside + bytes + kBeside, kPoison);
    send = input.data();
    recv = output.data() + kBeside;
    if (!calls.in_place) return;
    if (gives_blocks(calls.way.collective)) {
      recv = input.data() + rank * block;
      return;
    }
    std::byte* own = recv + (takes_blocks(calls.way.collective) ? rank * block : 0);
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
    ADD_FAILURE() << where << ": a rank without output got one";
}

}  // namespace

bool run_calls_of(Group& group, int rank, const Calls& calls) {
  const int ranks = group.shape().size();
  for (int i = 0; i < calls.times; ++i) {
    const std::string where = name_of(calls.way) + " of " + std::to_string(calls.count) + ", rank " + std::to_string(rank) +
                              " of " + std::to_string(ranks) + ", call " + std::to_string(i);
    Buffers buffers(calls, ranks, rank, i);
    const Call call{signature_of(calls), buffers.send, buffers.recv, scalar_of(rank, calls.dtype)};
    const auto outcome = group.call(rank, call, calls.first_number + static_cast<uint64_t>(i), calls.way.algorithm, calls.lane);
    if (!outcome) {
      ADD_FAILURE() << where << ": " << outcome.error().message;
      return false;
    }
    if (!outcome->agreed()) {
      ADD_FAILURE() << where << ": rank " << outcome->differing_rank << " is said to differ";
      return false;
    }
    compare(calls, buffers, expected_of(calls, group, rank, i), where);
  }
  return true;
}

bool run_calls(Group& group, const Calls& calls) {
  std::atomic<bool> good{true};
  group.run([&](int rank) {
    if (!run_calls_of(group, rank, calls)) good = false;
  });
  return good && !::testing::Test::HasFailure();
}

std::vector<Way> all_ways() {
  std::vector<Way> ways;
  for (const auto& algorithm : plan::kCatalog<plan::Price>) {
    ways.push_back({algorithm.collective, algorithm.name});
  }
  for (int collective = 0; collective < fcclCollSend; ++collective)
    if (!exchanges(static_cast<fcclColl_t>(collective)) && !is_uneven(static_cast<fcclColl_t>(collective)))
      ways.push_back({static_cast<fcclColl_t>(collective), "entries"});
  return ways;
}

}  // namespace fccl::testing
