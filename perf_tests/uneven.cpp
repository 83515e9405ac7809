// Draws counts from the number of a rank, so that all ranks draw the same.
#include "uneven.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "collective.h"
#include "hash.h"

namespace fccl::perf {
namespace {

constexpr std::array<std::string_view, 5> kNames{"linear", "one_has_all", "one_has_none", "random", "equal"};

std::size_t sum(const std::vector<std::size_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::size_t{0});
}

std::size_t weight(Uneven uneven, int rank, int ranks) {
  switch (uneven) {
    case Uneven::linear:
      return static_cast<std::size_t>(rank) + 1;
    case Uneven::one_has_all:
      return rank == ranks - 1 ? 1 : 0;
    case Uneven::one_has_none:
      return rank == ranks - 1 ? 0 : 1;
    case Uneven::random: {
      const std::uint64_t drawn = hash_of(0, 0, static_cast<std::size_t>(rank));
      return drawn % 4 == 0 ? 0 : (drawn >> 2) % 100;
    }
    default:
      return 1;
  }
}

// Divides `total` elements among the ranks.
std::vector<std::size_t> shares_of(Uneven uneven, std::size_t total, int ranks) {
  std::vector<std::size_t> shares(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) shares[static_cast<std::size_t>(rank)] = weight(uneven, rank, ranks);
  const std::size_t weights = std::max<std::size_t>(sum(shares), 1);
  for (std::size_t& share : shares) share = total / weights * share + total % weights * share / weights;
  return shares;
}

std::size_t pair_count(Uneven uneven, std::size_t count, int from, Place place, int to) {
  switch (uneven) {
    case Uneven::linear:
      return count / static_cast<std::size_t>(place.ranks) * (static_cast<std::size_t>(from) + 1);
    case Uneven::random: {
      const std::uint64_t drawn = hash_of(1, from, static_cast<std::size_t>(to));
      return drawn % 4 == 0 ? 0 : (drawn >> 2) % (count + 1);
    }
    default:
      return count * weight(uneven, from, place.ranks);
  }
}

// Makes the counts of collectives with a block for each rank in one of the two buffers.
UnevenCounts shared_counts(std::vector<std::size_t> shares, Place place) {
  UnevenCounts counts;
  counts.own = sum({shares.begin(), shares.begin() + place.rank});
  counts.largest = sum(shares);
  counts.busiest = counts.largest - std::ranges::min(shares);
  counts.received = std::move(shares);
  return counts;
}

}  // namespace

std::optional<Uneven> find_uneven(std::string_view name) {
  const auto found = std::ranges::find(kNames, name);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<Uneven>(found - kNames.begin());
}

std::string_view name_of(Uneven uneven) { return kNames[static_cast<std::size_t>(uneven)]; }

std::size_t UnevenCounts::all_sent() const { return sum(sent); }
std::size_t UnevenCounts::all_received() const { return sum(received); }

UnevenCounts gathered_counts(Uneven uneven, std::size_t count, Place place) {
  const auto ranks = static_cast<std::size_t>(place.ranks);
  UnevenCounts counts = shared_counts(shares_of(uneven, count * ranks, place.ranks), place);
  counts.begins.assign(ranks, 0);
  return counts;
}

UnevenCounts scattered_counts(Uneven uneven, std::size_t count, Place place) {
  const auto ranks = static_cast<std::size_t>(place.ranks);
  UnevenCounts counts = shared_counts(shares_of(uneven, count * ranks, place.ranks), place);
  counts.sent.swap(counts.received);
  counts.begins.assign(1, counts.own);
  return counts;
}

UnevenCounts exchanged_counts(Uneven uneven, std::size_t count, Place place) {
  const auto ranks = static_cast<std::size_t>(place.ranks);
  UnevenCounts counts{.sent = std::vector<std::size_t>(ranks),
                      .received = std::vector<std::size_t>(ranks),
                      .begins = std::vector<std::size_t>(ranks)};
  const auto of = [&](int from, int to) { return pair_count(uneven, count, from, place, to); };
  for (int rank = 0; rank < place.ranks; ++rank) {
    std::size_t sent = 0, received = 0, begin = 0;
    for (int peer = 0; peer < place.ranks; ++peer) {
      if (peer == place.rank) begin = sent;
      sent += of(rank, peer);
      received += of(peer, rank);
    }
    const auto index = static_cast<std::size_t>(rank);
    counts.sent[index] = of(place.rank, rank);
    counts.received[index] = of(rank, place.rank);
    counts.begins[index] = begin;
    counts.largest = std::max({counts.largest, sent, received});
    counts.busiest = std::max({counts.busiest, sent - of(rank, rank), received - of(rank, rank)});
  }
  return counts;
}

}  // namespace fccl::perf
