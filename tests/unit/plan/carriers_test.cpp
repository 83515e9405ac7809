// Pieces cover a chunk once, and load the ranks of a host alike.
#include "plan/carriers.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "plan/catalog.h"

namespace fccl::plan {
namespace {

TEST(Carriers, of_equal_hosts_are_equal_ranks) { EXPECT_EQ(pieces(2, 2), (std::vector<Piece>{{0, 0, 0, 2}, {1, 1, 2, 4}})); }

TEST(Carriers, of_three_ranks_and_one_are_everyone_and_the_one) {
  EXPECT_EQ(pieces(3, 1), (std::vector<Piece>{{0, 0, 0, 1}, {1, 0, 1, 2}, {2, 0, 2, 3}}));
  EXPECT_EQ(pieces(1, 3), (std::vector<Piece>{{0, 0, 0, 1}, {0, 1, 1, 2}, {0, 2, 2, 3}}));
}

TEST(Carriers, of_three_ranks_and_two_meet_at_the_drawn_places) {
  EXPECT_EQ(pieces(3, 2), (std::vector<Piece>{{0, 0, 0, 2}, {1, 0, 2, 3}, {1, 1, 3, 4}, {2, 1, 4, 6}}));
}

TEST(Carriers, cover_a_chunk_once_and_share_it_evenly) {
  for (int from_ranks = 1; from_ranks <= 9; ++from_ranks)
    for (int to_ranks = 1; to_ranks <= 9; ++to_ranks) {
      std::vector<int> sent(from_ranks, 0);
      std::vector<int> received(to_ranks, 0);
      int covered = 0;
      for (const Piece& piece : pieces(from_ranks, to_ranks)) {
        EXPECT_EQ(piece.begin, covered);
        EXPECT_LT(piece.begin, piece.end);
        covered = piece.end;
        sent[piece.from_rank] += piece.end - piece.begin;
        received[piece.to_rank] += piece.end - piece.begin;
      }
      EXPECT_EQ(covered, from_ranks * to_ranks);
      EXPECT_EQ(sent, std::vector<int>(from_ranks, to_ranks));
      EXPECT_EQ(received, std::vector<int>(to_ranks, from_ranks));
      EXPECT_EQ(pieces(from_ranks, to_ranks).size(),
                static_cast<size_t>(from_ranks + to_ranks - std::gcd(from_ranks, to_ranks)));
    }
}

TEST(FirstElement, is_the_same_for_equal_places_of_unequal_hosts) {
  for (size_t elements : {0, 1, 5, 7, 1000, 1001})
    for (int part = 0; part <= 3; ++part)
      for (int times : {2, 5, 7}) EXPECT_EQ(first_element(elements, part, 3), first_element(elements, part * times, 3 * times));
}

TEST(FirstElement, of_parts_ends_at_the_last_element_and_never_goes_back) {
  for (size_t elements : {0, 1, 5, 7, 1000}) {
    for (int part = 0; part < 7; ++part) EXPECT_LE(first_element(elements, part, 7), first_element(elements, part + 1, 7));
    EXPECT_EQ(first_element(elements, 7, 7), elements);
  }
}

TEST(FirstElement, does_not_overflow) { EXPECT_EQ(first_element(size_t{1} << 62, 1 << 20, 1 << 21), size_t{1} << 61); }

// Runs an algorithm between hosts of unequal numbers of ranks, piece by piece, on chunks of 12 elements. The value of an
// element is the set of hosts whose contribution is in it.
class Ranks {
 public:
  Ranks(fcclColl_t collective, Cut cut, Group group, std::vector<int> ranks) : group_(group), ranks_(std::move(ranks)) {
    const bool reduces = collective == fcclCollReduceScatter || collective == fcclCollAllReduce || collective == fcclCollReduce;
    const bool from_root = collective == fcclCollBroadcast || collective == fcclCollScatter;
    for (int host = 0; host < group_.members; ++host)
      for (int chunk = 0; chunk < (cut == Cut::whole ? 1 : group_.members); ++chunk) {
        if (reduces || (from_root ? host == group_.root : host == chunk)) give(host, {Space::data, chunk}, 1 << host);
        if (reduces && (cut == Cut::whole || chunk == host)) give(host, {Space::parts, host}, 1 << host);
      }
  }

  static int member() { return kEveryMember; }

  void transfer(const Transfer& t) {
    for (const Piece& piece : pieces(ranks_[t.from], ranks_[t.to]))
      for (int k = 0; k < t.count; ++k)
        for (int e = edge(t, piece.begin); e < edge(t, piece.end); ++e) {
          const int value = at(t.from, piece.from_rank, moved(t.source, k))[e];
          EXPECT_NE(value, 0) << "rank " << piece.from_rank << " of host " << t.from << " sends what it does not have";
          at(t.to, piece.to_rank, moved(t.target, k))[e] = value;
        }
  }

  void add(const Addition& addition) {
    for (int rank = 0; rank < ranks_[addition.member]; ++rank)
      for (int host = 0; host < group_.members; ++host)
        for (int e = 0; e < kElements; ++e)
          at(addition.member, rank, {Space::data, addition.chunk})[e] |= at(addition.member, rank, {Space::parts, host})[e];
  }

  // Whether the rank has all contributions to its part of a chunk.
  bool has(int host, int rank, int chunk, int hosts) {
    for (int e = part(host, rank); e < part(host, rank + 1); ++e)
      if (at(host, rank, {Space::data, chunk})[e] != hosts) return false;
    return true;
  }

 private:
  static constexpr int kElements = 12;

  static int edge(int place, int places) { return static_cast<int>(first_element(kElements, place, places)); }
  int edge(const Transfer& t, int place) const { return edge(place, ranks_[t.from] * ranks_[t.to]); }
  int part(int host, int rank) const { return edge(rank, ranks_[host]); }
  Slot moved(Slot slot, int by) const { return {slot.space, group_.around(slot.index + by)}; }

  std::vector<int>& at(int host, int rank, Slot slot) {
    std::vector<int>& elements = memory_[{host, rank, static_cast<int>(slot.space), slot.index}];
    elements.resize(kElements);
    return elements;
  }

  void give(int host, Slot slot, int value) {
    for (int rank = 0; rank < ranks_[host]; ++rank)
      for (int e = part(host, rank); e < part(host, rank + 1); ++e) at(host, rank, slot)[e] = value;
  }

  Group group_;
  std::vector<int> ranks_;
  std::map<std::array<int, 4>, std::vector<int>> memory_;
};

TEST(Carriers, have_what_they_send_and_get_what_they_need_on_uneven_hosts) {
  for (const auto& ranks : std::vector<std::vector<int>>{{3, 1}, {2, 1, 1}, {1, 2, 3, 4}, {5, 3, 2, 1, 4}, {2, 2, 2}})
    for (const auto& algorithm : kCatalog<Ranks>) {
      const Group group{static_cast<int>(ranks.size()), 1};
      Ranks sink(algorithm.collective, algorithm.cut, group, ranks);
      algorithm.tell(group, sink);
      const int all = (1 << group.members) - 1;
      for (int host = 0; host < group.members; ++host)
        for (int rank = 0; rank < ranks[host]; ++rank) {
          for (int chunk = 0; chunk < group.members; ++chunk) {
            const bool gathers = algorithm.collective == fcclCollAllGather;
            EXPECT_TRUE(!gathers || sink.has(host, rank, chunk, 1 << chunk));
          }
          EXPECT_TRUE(algorithm.collective != fcclCollReduceScatter || sink.has(host, rank, host, all));
          EXPECT_TRUE(algorithm.collective != fcclCollAllReduce || sink.has(host, rank, 0, all));
          EXPECT_TRUE(algorithm.collective != fcclCollBroadcast || sink.has(host, rank, 0, 1 << group.root));
        }
    }
}

}  // namespace
}  // namespace fccl::plan
