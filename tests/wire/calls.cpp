// The results that each collective must bring, and the comparison.
#include "wire/calls.h"

#include <algorithm>
#include <atomic>

#include "oracle.h"
#include "plan/catalog.h"
#include "plan/price.h"
#include "unit/host/outcomes.h"
#include "unit/kernels/reference.h"

namespace fccl::core::testing {
namespace {

constexpr size_t kBeside = 64;  // bytes before and behind an output that must stay as they are

Signature signature_of(const Calls& calls, const BlocksOfBuffer& of_all_ranks) {
  const fcclColl_t collective = calls.way.collective;
  Signature signature{collective, calls.dtype, is_reduction(collective) ? calls.op : ReduceOp::sum,
                      is_rooted(collective) ? calls.root : -1, collective == fcclCollBarrier ? 0 : calls.count};
  if (!is_uneven(collective)) return signature;
  signature.count = exchanges(collective) ? 0 : of_all_ranks.total();
  signature.counts = exchanges(collective) ? 0 : hash_of(std::span<const size_t>(of_all_ranks.counts));
  return signature;
}

Bytes input_of_rank(const Calls& calls, int ranks, int rank, int iteration) {
  return input_of(rank, input_of_rank(calls.counts(ranks, iteration), rank).extent * size_of(calls.dtype), iteration);
}

Scalar scalar_of(int rank, fcclDataType_t dtype) {
  Scalar scalar;
  const Bytes bytes = input_of(100 + rank, size_of(dtype), 0);
  std::copy(bytes.begin(), bytes.end(), reinterpret_cast<std::byte*>(&scalar.bits));
  return scalar;
}

// The output of a rank, poison between its blocks; empty if it has none.
Bytes expected_of(const Calls& calls, Group& group, int rank, int iteration) {
  const fcclColl_t collective = calls.way.collective;
  const int ranks = group.shape().size();
  const Counts counts = calls.counts(ranks, iteration);
  const BlocksOfBuffer output = output_of_rank(counts, rank);
  const size_t element = size_of(calls.dtype);
  Bytes all(output.extent * element, kPoison);
  for (int block = 0; block < output_blocks(collective, ranks); ++block) {
    const size_t bytes = output.counts[static_cast<size_t>(block)] * element;
    std::vector<Bytes> given;
    std::vector<Scalar> scalars;
    for (const Source& source : sources_of(collective, rank, block, ranks, calls.root)) {
      const Bytes input = input_of_rank(calls, ranks, source.rank, iteration);
      const size_t offset = input_of_rank(counts, source.rank).offsets[static_cast<size_t>(source.block)] * element;
      const auto begin = input.begin() + static_cast<ptrdiff_t>(offset);
      given.emplace_back(begin, begin + static_cast<ptrdiff_t>(bytes));
      scalars.push_back(scalar_of(source.rank, calls.dtype));
    }
    if (given.empty()) return {};
    const Hosts hosts{group.shape().ranks, group.shape().wire_type == WireType::float32};
    const Bytes made =
        reduces(collective) && bytes > 0 ? reference_reduce(calls.dtype, calls.op, given, scalars, hosts) : given[0];
    std::ranges::copy(made, all.begin() + static_cast<ptrdiff_t>(output.offsets[static_cast<size_t>(block)] * element));
  }
  return all;
}

std::vector<ByteRange> ranges_of(const BlocksOfBuffer& blocks, size_t element) {
  std::vector<ByteRange> ranges;
  for (size_t i = 0; i < blocks.counts.size(); ++i)
    ranges.push_back(blocks.counts[i] == 0 ? ByteRange{} : ByteRange{blocks.offsets[i] * element, blocks.counts[i] * element});
  return ranges;
}

// As the C interface makes them of the user's arrays.
UnevenBlocks uneven_blocks_of(const Calls& calls, const Counts& counts, int rank) {
  const size_t element = size_of(calls.dtype);
  UnevenBlocks blocks;
  const BlocksOfBuffer input = input_of_rank(counts, rank), output = output_of_rank(counts, rank);
  if (gives_blocks(calls.way.collective))
    blocks.input.set(ranges_of(input, element));
  else
    blocks.input.set(input.total() * element);
  if (takes_blocks(calls.way.collective))
    blocks.output.set(ranges_of(output, element));
  else
    blocks.output.set(output.total() * element);
  return blocks;
}

// The memory of a rank: in place its input lies within its output, or its output within its input.
struct Buffers {
  Bytes input, output;
  const std::byte* send;
  std::byte* recv;

  Buffers(const Calls& calls, int ranks, int rank, int iteration) : input(input_of_rank(calls, ranks, rank, iteration)) {
    const size_t element = size_of(calls.dtype);
    const BlocksOfBuffer given = input_of_rank(calls.counts(ranks, iteration), rank);
    const BlocksOfBuffer taken = output_of_rank(calls.counts(ranks, iteration), rank);
    output.assign(kBeside + taken.extent * element + kBeside, kPoison);
    send = input.data();
    recv = output.data() + kBeside;
    if (!calls.in_place || exchanges(calls.way.collective)) return;
    if (gives_blocks(calls.way.collective)) {
      recv = input.data() + given.offsets[static_cast<size_t>(rank)] * element;
      return;
    }
    std::byte* own = recv + (takes_blocks(calls.way.collective) ? taken.offsets[static_cast<size_t>(rank)] * element : 0);
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
    const Counts counts = calls.counts(ranks, i);
    const UnevenBlocks blocks = uneven_blocks_of(calls, counts, rank);
    const BlocksOfBuffer of_all_ranks =
        takes_blocks(calls.way.collective) ? output_of_rank(counts, rank) : input_of_rank(counts, rank);
    const Call call{signature_of(calls, of_all_ranks), buffers.send, buffers.recv, scalar_of(rank, calls.dtype),
                    is_uneven(calls.way.collective) ? &blocks : nullptr};
    const auto outcome = group.call(rank, call, calls.first_number + static_cast<uint64_t>(i), calls.way.algorithm, calls.lane);
    if (!outcome) {
      ADD_FAILURE() << where << ": " << outcome.error().message;
      return false;
    }
    if (!is_done(*outcome)) {
      ADD_FAILURE() << where << ": the calls are said to differ";
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
  for (int c = 0; c < fcclCollSend; ++c) {
    const auto collective = static_cast<fcclColl_t>(c);
    for (const auto& algorithm : plan::kCatalog<plan::Price>)
      if (algorithm.collective == even_form(collective)) ways.push_back({collective, algorithm.name});
    ways.push_back({collective, "entries"});
  }
  return ways;
}

}  // namespace fccl::core::testing
