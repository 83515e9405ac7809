// Counts the loads of an algorithm, and turns them into seconds.
#include "plan/price.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "base/collective.h"
#include "plan/catalog.h"
#include "plan/entry_rounds.h"

namespace fccl::core::plan {
namespace {

Load larger(const Load& a, const Load& b) { return {std::max(a.messages, b.messages), std::max(a.chunks, b.chunks)}; }

// Returns the bytes of a host's chunk (for AlltoAll, of its chunk for one other host), as if each of its columns carried as
// much as the busiest.
double chunk_bytes(const Request& request, Cut cut, const Shape& shape) {
  const Collective& row = row_of(request.collective);
  if (row.givers == Who::nobody) return 0;
  const int blocks = shape.carried_blocks() * shape.columns;
  if (row.has_pairs()) return request.bytes * blocks * shape.most_ranks;
  if (row.has_rank_blocks()) return request.bytes * blocks;
  return cut == Cut::whole ? request.bytes : request.bytes / shape.hosts;
}

// Returns the bytes that a rank copies or adds within its host.
double host_bytes(const Request& request, const Shape& shape) {
  const Collective& row = row_of(request.collective);
  if (row.has_rank_blocks()) return request.bytes * shape.ranks;
  return request.bytes * ((row.givers == Who::all ? 1 : 0) + (row.takers == Who::all ? 1 : 0));
}

// Adds the time of `things` items that pass through a pipeline of three stages, each given by its time per item. The slowest
// stage sets the pace; stages of about equal length delay each other.
void pass(Time& time, int things, double message, double wire, double host) {
  const double pace = std::hypot(message, wire, host);
  if (pace == 0) return;
  time.message += things * message * message / pace;
  time.wire += things * wire * wire / pace;
  time.host += things * host * host / pace;
}

}  // namespace

void Price::transfer(const Transfer& transfer) {
  if (transfer.round >= cost_.rounds) {
    cost_.rounds = transfer.round + 1;
    in_round_ = {};
  }
  load(ports_[2 * transfer.from], transfer);
  load(ports_[2 * transfer.to + 1], transfer);
}

void Price::load(Port& port, const Transfer& transfer) {
  if (port.round != transfer.round) port.in_round = {};
  port.round = transfer.round;
  for (Load* load : {&port.all, &port.in_round}) {
    ++load->messages;
    load->chunks += transfer.count;
  }
  const Load busiest = larger(in_round_, port.in_round);
  cost_.path.messages += busiest.messages - in_round_.messages;
  cost_.path.chunks += busiest.chunks - in_round_.chunks;
  in_round_ = busiest;
  cost_.port = larger(cost_.port, port.all);
}

void Price::add(const Addition& addition) { cost_.additions = std::max(cost_.additions, ++additions_[addition.member]); }

std::vector<Cost> price_catalog(int hosts) {
  std::vector<Cost> costs;
  for (const auto& algorithm : kCatalog<Price>) {
    Price sink({hosts});
    algorithm.tell({hosts}, sink);
    costs.push_back(sink.cost());
  }
  return costs;
}

Time predict(const Request& request, Cut cut, const Cost& cost, const Shape& shape, int slices) {
  const CostConstants& c = shape.constants;
  const double chunk = chunk_bytes(request, cut, shape) / slices;
  const double wire = chunk / shape.rails * c.wire_byte;
  const double copied = host_bytes(request, shape) / slices * c.host_byte;
  const double added = chunk / shape.columns * shape.hosts * cost.additions * c.added_byte;
  const int rounds = cost.rounds;
  const int behind = cost.path.messages - rounds;
  const double sent = cost.path.messages > 0 ? cost.path.chunks * wire / cost.path.messages : 0;
  Time time{.latency = rounds * c.latency, .message = rounds * c.message, .wire = rounds * sent, .host = added};
  pass(time, behind, c.message, sent, 0);
  // The host's ranks copy one message while the next is on the wire.
  const double share = rounds > 0 ? static_cast<double>(rounds) / cost.path.messages : 1;
  time.host += share * copied + (1 - share) * std::max(0.0, copied - time.message - time.wire);
  pass(time, slices - 1, cost.port.messages * c.message, cost.port.chunks * wire, copied + added);
  return time;
}

double seconds_of_entries(fcclColl_t collective, const Shape& shape) {
  const EntryRounds entries =
      EntryRounds::of_call(shape.hosts, row_of(collective), std::nullopt, payload_bytes_of(shape.hosts), shape.constants);
  return entries.count() * shape.constants.message;
}

std::optional<WithEntries> predict_with_entries(const Request& request, const Shape& shape) {
  const Collective& row = row_of(request.collective);
  const double bytes = chunk_bytes(request, Cut::whole, shape) / shape.columns;
  if (shape.hosts == 1 || bytes > static_cast<double>(kContentBytes)) return std::nullopt;
  EntryRounds entries(shape.hosts, false);
  if (EntryRounds::may_pass_on(row, shape.most_ranks == shape.columns))
    entries =
        EntryRounds::of_call(shape.hosts, row, static_cast<size_t>(bytes), payload_bytes_of(shape.hosts), shape.constants);
  const bool is_of_root = row.givers == Who::root && row.input == Extent::one_block;
  const int passed_on = entries.is_by_dissemination() ? EntryRounds::passed_on(shape.hosts, row) : 0;
  const Load load{entries.count(), is_of_root ? entries.count() : shape.hosts - 1 + passed_on};
  const Cost cost{.rounds = entries.in_turn(), .path = load, .port = load, .additions = row.reduces ? 1 : 0};
  return WithEntries{cost.rounds, predict(request, Cut::whole, cost, shape, 1)};
}

double wire_minimum(const Request& request, const Shape& shape) {
  if (shape.hosts == 1) return 0;
  const Collective& row = row_of(request.collective);
  if (row.givers == Who::nobody) return 0;
  if (!row.has_rank_blocks()) return row.is_rooted() ? request.bytes : 2 * request.bytes * (shape.hosts - 1) / shape.hosts;
  // Only the largest and the smallest host are known; each sends as much as it receives.
  if (row.has_pairs())
    return request.bytes *
           std::max(shape.most_ranks * (shape.ranks - shape.most_ranks), shape.columns * (shape.ranks - shape.columns));
  // The largest host may hold the root. Without a root, the smallest host receives the most.
  return request.bytes * (shape.ranks - (row.is_rooted() ? shape.most_ranks : shape.columns));
}

}  // namespace fccl::core::plan
