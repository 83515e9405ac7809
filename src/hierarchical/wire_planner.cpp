// Chooses a wire plan, and derives sizes from it.
#include "hierarchical/wire_planner.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "base/rounding.h"
#include "plan/catalog.h"

namespace fccl::core {
namespace {

// Pieces are multiples of this unit, and so of every element. Sums, and messages of few pieces, use a cache line; pairs use
// less.
constexpr size_t kUnit = 64;
constexpr size_t kUnitOfPairs = 8;
// Memory per slice for pieces that lie in no buffer of the user.
constexpr size_t kStagedBytes = size_t{2} << 20;

// Returns the bytes of a block; the average for blocks with counts of their own, the longest for pairs of ranks.
size_t bytes_of(const Call& call, int ranks, size_t longest) {
  const Collective& row = call.signature.row();
  if (row.has_pairs()) return longest;
  return row.is_uneven() ? call.signature.bytes() / static_cast<size_t>(ranks) : call.signature.result_bytes();
}

// Returns the collective's first algorithm in the catalog.
int first_of(fcclColl_t collective) {
  const auto& catalog = plan::kCatalog<plan::Project>;
  return static_cast<int>(std::ranges::find(catalog, collective, &plan::Algorithm<plan::Project>::collective) -
                          catalog.begin());
}

}  // namespace

WirePlanner::WirePlanner(const Columns& columns, const WireSettings& settings)
    : columns_(columns),
      settings_(settings),
      chooser_({columns.hosts(), columns.ranks(), columns.most_ranks(), columns.columns(), settings.rails, settings.costs}) {}

fcclDataType_t WirePlanner::partial_type(const Signature& signature) const {
  const fcclDataType_t result = signature.result_type();
  return is_reduction(signature.collective) ? fccl::core::partial_type(result, settings_.wire_type) : result;
}

ReduceKernel WirePlanner::partial_kernel_of(const Signature& s) const {
  return fccl::core::partial_kernel(s.dtype, s.op, s.widens ? WireType::float32 : settings_.wire_type);
}

ReduceKernel WirePlanner::total_kernel_of(const Signature& s) const {
  return fccl::core::total_kernel(s.result_type(), s.op, settings_.wire_type);
}

const Blocks& WirePlanner::blocks_of(const Signature& signature, bool is_whole, int column) const {
  if (has_rank_blocks(signature.collective)) return columns_.by_rank(column);
  return is_whole ? columns_.whole(column) : columns_.by_host(column);
}

WirePlan WirePlanner::wire_plan_of(const Call& call, size_t longest) {
  const fcclColl_t collective = even_form(call.signature.collective);
  const int preferred = preferred_algorithm(collective);
  std::optional<size_t> bytes = preferred < 0 ? bytes_in_one_slice(call, longest) : std::nullopt;
  if (bytes && *bytes > std::min(plan::kContentBytes, settings_.payload_bytes)) bytes = std::nullopt;
  WirePlan wire_plan{
      .beside_entries = bytes.has_value(), .by_dissemination = goes_by_dissemination(call.signature, bytes), .pieces = {}};
  if (wire_plan.beside_entries) {
    wire_plan.is_whole = true;
    cut(wire_plan, call, longest, {.slices = 1, .most_chunks = 1});
    return wire_plan;
  }
  const plan::Request request{collective, static_cast<double>(bytes_of(call, columns_.ranks(), longest))};
  plan::Choice choice = preferred < 0 ? chooser_.choose(request) : chooser_.best_slices(preferred, request);
  const int root_host = call.signature.root < 0 ? 0 : columns_.host_of(call.signature.root);
  const Plan* plan = &plan_of(choice.algorithm, root_host);
  // Messages of many chunks suit short calls between many hosts, but slots may be too small for them.
  const size_t blocks = load_of(call.signature, true).in_message;
  if (plan->most_chunks > 1 && settings_.slot_bytes / static_cast<size_t>(plan->most_chunks) < kUnit * blocks) {
    choice = chooser_.best_slices(first_of(collective), request);
    plan = &plan_of(choice.algorithm, root_host);
  }
  wire_plan.is_whole = plan->is_whole;
  wire_plan.hands_on = plan->most_chunks > 1;
  if (columns_.has_column()) wire_plan.steps = &plan->steps;
  cut(wire_plan, call, longest, {choice.slices, plan->most_chunks});
  return wire_plan;
}

std::optional<size_t> WirePlanner::bytes_in_one_slice(const Call& call, size_t longest) const {
  const Signature& signature = call.signature;
  const size_t elements = layout_of(call, true, longest).most() / size_of(signature.result_type());
  const size_t bytes = elements * widest_element(signature);
  if (bytes > limit(signature, true, 1)) return std::nullopt;
  return load_of(signature, true).in_message * bytes;
}

// In init each host tells every other one, since its barrier shows that every host reaches every other.
bool WirePlanner::goes_by_dissemination(const Signature& signature, std::optional<size_t> bytes_beside_entries) const {
  const Collective& row = signature.row();
  if (signature.issuer == Issuer::init) return false;
  if (bytes_beside_entries && !plan::EntryRounds::may_pass_on(row, columns_.is_even())) return false;
  return plan::EntryRounds::of_call(columns_.hosts(), row, bytes_beside_entries, settings_.payload_bytes, settings_.costs)
      .is_by_dissemination();
}

// Returns the algorithm's place in the catalog, or -1.
int WirePlanner::preferred_algorithm(fcclColl_t collective) const {
  const auto& catalog = plan::kCatalog<plan::Project>;
  for (size_t i = 0; i < catalog.size() && !preferred_.empty(); ++i)
    if (catalog[i].collective == collective && catalog[i].name == preferred_) return static_cast<int>(i);
  return -1;
}

const WirePlanner::Plan& WirePlanner::plan_of(int algorithm, int root_host) {
  const auto [found, is_new] = plans_.try_emplace({algorithm, root_host});
  Plan& plan = found->second;
  if (is_new) {
    plan.is_whole = plan::kCatalog<plan::Project>[static_cast<size_t>(algorithm)].cut == plan::Cut::whole;
    plan.steps = plan::steps_of(algorithm, {columns_.hosts(), root_host}, columns_.host());
    for (const plan::Step& step : plan.steps) plan.most_chunks = std::max(plan.most_chunks, step.count);
  }
  return plan;
}

bool WirePlanner::has_room_for_pairs() const {
  const auto blocks = static_cast<size_t>(columns_.by_rank(0).most()) * static_cast<size_t>(columns_.most_ranks());
  return settings_.slot_bytes / kUnitOfPairs >= blocks;
}

WirePlanner::Load WirePlanner::load_of(const Signature& signature, bool is_whole) const {
  const Blocks& blocks = blocks_of(signature, is_whole, 0);
  const auto most = static_cast<size_t>(blocks.most()), all = static_cast<size_t>(blocks.size());
  if (!signature.row().has_pairs()) return {most, all};
  const auto most_ranks = static_cast<size_t>(columns_.most_ranks());
  return {most * most_ranks, std::max(most * static_cast<size_t>(columns_.ranks()), all * most_ranks)};
}

// Says where the blocks lie in the buffer that has several, or how one buffer is divided into parts; for a call that widens, in
// elements of the result's type.
Layout WirePlanner::layout_of(const Call& call, bool is_whole, size_t longest) const {
  const Signature& signature = call.signature;
  const Collective& row = signature.row();
  if (row.has_pairs()) return Layout::of_one(longest);
  const auto ranks = static_cast<size_t>(columns_.ranks());
  if (signature.widens && row.has_rank_blocks())
    return Layout::of_many(signature.result_bytes(), signature.result_bytes() * ranks);
  if (row.has_rank_blocks())
    return row.output == Extent::block_per_rank ? call.output(columns_.ranks()) : call.input(columns_.ranks());
  const int blocks = columns_.columns() * (is_whole ? 1 : columns_.hosts());
  return Layout::of_many(divided_up(signature.count, static_cast<size_t>(blocks)) * size_of(signature.result_type()),
                         signature.result_bytes());
}

// Returns the largest piece, in bytes of the wider of the two types: a message must fit into a slot of the wire, a piece into a
// slot of the segment, and the staged pieces of a slice into their memory.
size_t WirePlanner::limit(const Signature& signature, bool is_whole, int most_chunks) const {
  const Load load = load_of(signature, is_whole);
  const size_t in_message = load.in_message * static_cast<size_t>(most_chunks);
  const size_t unit = signature.row().has_pairs() ? kUnitOfPairs : kUnit;
  const size_t limit =
      std::min({settings_.slot_bytes / in_message, settings_.host_slot_bytes, std::max(unit, kStagedBytes / load.in_slice)});
  check(limit >= unit, "a slot of the wire holds a unit of every block of a message");
  return limit / unit * unit;
}

size_t WirePlanner::widest_element(const Signature& signature) const {
  return std::max(size_of(signature.result_type()), size_of(partial_type(signature)));
}

void WirePlanner::cut(WirePlan& wire_plan, const Call& call, size_t longest, Cuts cuts) const {
  const Signature& signature = call.signature;
  Pieces& pieces = wire_plan.pieces;
  pieces.blocks = layout_of(call, wire_plan.is_whole, longest);
  pieces.element_shift = std::countr_zero(size_of(signature.result_type()));
  const size_t element = widest_element(signature);
  const size_t most = limit(signature, wire_plan.is_whole, cuts.most_chunks) / element;
  const size_t unit = kUnit / std::min<size_t>(element, kUnit);
  const size_t wanted = divided_up(divided_up(pieces.most_elements(), static_cast<size_t>(cuts.slices)), unit) * unit;
  pieces.piece_elements = std::clamp<size_t>(wanted, 1, most);
  pieces.slices = divided_up(pieces.most_elements(), pieces.piece_elements);
}

}  // namespace fccl::core
