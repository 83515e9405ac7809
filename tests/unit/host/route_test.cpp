// Tests the choice of routes against a table of what the phases chose before there were routes.
#include "host/route.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "base/call.h"
#include "segment/lane_board.h"
#include "segment/segment.h"
#include "settings/settings.h"

namespace fccl::core {
namespace {

constexpr size_t kLeastBytes = 64, kMostBytes = size_t{64} << 20;

// One combination of the facts of a line, but for the bytes.
struct Cell {
  std::string collective;  // with a prefix: "widens:" for float32 results, "past:" for a call past the mailbox
  int ranks;
  std::string attach, arena, in_place;

  auto operator<=>(const Cell&) const = default;
};

struct Line {
  std::vector<Cell> cells;
  std::vector<std::pair<size_t, std::string>> routes;  // from so many bytes on
};

std::vector<std::string> parts_of(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

std::vector<std::string> values_of(const std::string& word, const std::vector<std::string>& all) {
  return word == "any" ? all : parts_of(word, ',');
}

std::vector<std::pair<size_t, std::string>> routes_in(std::istringstream& words) {
  std::string rest;
  std::getline(words >> std::ws, rest);
  std::vector<std::pair<size_t, std::string>> routes;
  for (const std::string& part : parts_of(rest, '|')) {
    size_t from = kLeastBytes, begin = part.find_first_not_of(' ');
    if (!routes.empty()) {
      from = std::stoull(part.substr(begin));
      begin = part.find(' ', begin) + 1;
    }
    routes.emplace_back(from, part.substr(begin, part.find_last_not_of(' ') + 1 - begin));
  }
  return routes;
}

std::vector<Line> lines_of_table() {
  std::vector<Line> lines;
  std::ifstream file(FCCL_TEST_ROUTES);
  for (std::string text; std::getline(file, text);) {
    if (text.starts_with('#')) continue;
    std::istringstream words(text);
    std::string collectives, ranks, attach, arena, in_place;
    words >> collectives >> ranks >> attach >> arena >> in_place;
    Line& line = lines.emplace_back();
    for (const std::string& collective : parts_of(collectives, ','))
      for (const std::string& count : parts_of(ranks, ','))
        for (const std::string& attached : values_of(attach, {"off", "on", "far"}))
          for (const std::string& buffers : values_of(arena, {"none", "input", "all"}))
            for (const std::string& placed : values_of(in_place, {"no", "yes"}))
              line.cells.push_back({collective, std::stoi(count), attached, buffers, placed});
    line.routes = routes_in(words);
  }
  return lines;
}

fcclColl_t collective_of(const std::string& word) {
  const std::string name = word.substr(word.find(':') + 1);
  for (int each = 0; each < fcclCollSend; ++each)
    if (name == name_of(static_cast<fcclColl_t>(each))) return static_cast<fcclColl_t>(each);
  return fcclNumColls;
}

// Sets blocks of `bytes` bytes. Block 0 of all ranks is half as long, unless each pair of ranks has a block.
void set_blocks(UnevenBlocks& blocks, const Collective& row, int ranks, size_t bytes) {
  std::vector<ByteRange> ranges;
  for (int rank = 0; rank < ranks; ++rank)
    ranges.push_back({static_cast<size_t>(rank) * bytes, rank == 0 && !row.has_pairs() ? bytes / 2 : bytes});
  if (row.input == Extent::block_per_rank) blocks.input.set(ranges);
  if (row.output == Extent::block_per_rank) blocks.output.set(ranges);
}

Route route_for(const Cell& cell, size_t bytes) {
  const fcclColl_t collective = collective_of(cell.collective);
  const Collective& row = row_of(collective);
  Call call{{.collective = collective, .dtype = fcclInt8, .root = row.is_rooted() ? 0 : -1, .count = bytes}};
  if (cell.collective.starts_with("widens:")) {
    call.signature.dtype = fcclBfloat16;
    call.signature.widens = true;
    call.signature.count = bytes;
  }
  UnevenBlocks blocks;
  if (row.is_uneven()) {
    set_blocks(blocks, row, cell.ranks, bytes);
    call.uneven = &blocks;
  }
  const bool attaches = cell.attach != "off", in_place = cell.in_place == "yes";
  const Attaching attaching{attaches, cell.attach == "far",
                            lane_of(collective) == kGatherLane ? kTuning.least_gathered : kTuning.least_exchanged};
  const Offers offers{.all_read = attaches,
                      .all_in_place = in_place,
                      .any_in_place = in_place,
                      .mapped = cell.arena != "none",
                      .outputs_mapped = cell.arena == "all" && collective == fcclCollAllReduce};
  const SegmentShape shape{cell.ranks, Settings{}.mailbox_bytes, Settings{}.slot_bytes, cell.ranks};
  return route_of({call, shape, attaching, offers, shape.box_bytes(), cell.collective.starts_with("past:")});
}

std::string words_for(const Route& route) {
  constexpr const char* kVariants[] = {"", " whole", " of shards", " of two"};
  return fmt::format("{}{}{}{}{}", name_of(route.path), kVariants[static_cast<size_t>(route.variant)],
                     route.piece == 0 ? "" : fmt::format(" {}", route.piece), route.streams ? " streamed" : "",
                     route.to_outputs ? " outputs" : "");
}

void expect_routes(const Cell& cell, const Line& line) {
  for (size_t i = 0; i < line.routes.size(); ++i) {
    const auto& [from, words] = line.routes[i];
    const size_t last = i + 1 < line.routes.size() ? line.routes[i + 1].first - 1 : kMostBytes;
    std::set<size_t> sizes{from, last};
    for (size_t size = kLeastBytes; size <= kMostBytes; size *= 4)
      if (size >= from && size <= last) sizes.insert(size);
    for (const size_t size : sizes)
      ASSERT_EQ(words_for(route_for(cell, size)), words)
          << fmt::format("{} of {} bytes, {} ranks, attach {}, arena {}, in place {}", cell.collective, size, cell.ranks,
                         cell.attach, cell.arena, cell.in_place);
  }
}

TEST(Route, is_for_all_facts_what_the_table_says) {
  std::set<Cell> seen;
  for (const Line& line : lines_of_table())
    for (const Cell& cell : line.cells) {
      EXPECT_TRUE(seen.insert(cell).second) << "the table has " << cell.collective << " twice";
      expect_routes(cell, line);
    }
  EXPECT_EQ(seen.size(), 936U) << "every collective and place of buffers, on 1 to 5 ranks";
}

TEST(Route, of_an_all_reduce_with_one_rank_in_place_is_that_of_all_in_place) {
  const SegmentShape shape{3, 4096, 1 << 18, 3};
  const Call call{{.collective = fcclCollAllReduce, .dtype = fcclInt8, .count = 100'000}};
  const Offers one{.all_in_place = false, .any_in_place = true, .mapped = true}, none{.all_in_place = false, .mapped = true};
  EXPECT_EQ(route_of({call, shape, {}, one}).variant, Variant::shards);
  EXPECT_EQ(route_of({call, shape, {}, none}).variant, Variant::whole);
}

TEST(Route, is_the_ring_if_one_rank_cannot_read_its_peers) {
  const SegmentShape shape{3, 4096, 1 << 18, 3};
  const Call call{{.collective = fcclCollAllGather, .dtype = fcclInt8, .count = 100'000}};
  const Attaching attaching{.is_open = true};
  EXPECT_EQ(route_of({call, shape, attaching, {}, 0, true}).path, Path::attach);
  EXPECT_EQ(route_of({call, shape, attaching, {.all_read = false}, 0, true}).path, Path::ring);
}

TEST(Route, follows_the_tuning_that_it_is_given) {
  const SegmentShape shape{2, 4096, 1 << 18, 2};
  const Call call{{.collective = fcclCollAllReduce, .dtype = fcclInt8, .count = 100'000}};
  const Offers offers{.mapped = true};
  Tuning tuning;
  EXPECT_EQ(route_of({call, shape, {}, offers, 0, true, false, tuning}).variant, Variant::whole);
  tuning.read_whole = 99'999;
  EXPECT_EQ(route_of({call, shape, {}, offers, 0, true, false, tuning}).variant, Variant::shards);
}

// Each wait for other ranks may cost a time slice of another program there.
TEST(Route, has_slices_of_half_a_ring_where_ranks_wait_long) {
  for (const int ranks : {2, 3, 8, 64}) {
    const SegmentShape shape{ranks, 4096, 1 << 18, ranks};
    for (int c = 0; c < fcclCollSend; ++c) {
      const auto collective = static_cast<fcclColl_t>(c);
      const Collective& row = row_of(collective);
      if (row.is_uneven() || collective == fcclCollBarrier) continue;
      const Call call{{.collective = collective, .dtype = fcclInt8, .root = row.is_rooted() ? 0 : -1, .count = 10'000'000}};
      const Route usual = route_of({call, shape, {}, {}, 0, true});
      const Route longer = route_of({call, shape, {}, {}, 0, true, true});
      EXPECT_EQ(longer.piece, 2 * usual.piece) << row.name;
      EXPECT_LE(2 * longer.piece, row.needs_pair_slots() && ranks > 2 ? shape.pair_ring_bytes() : shape.gather_ring_bytes());
    }
  }
}

TEST(Route, leaves_the_slices_of_an_all_to_all_v_as_they_are_for_its_counts) {
  const SegmentShape shape{3, 4096, 1 << 18, 3};
  UnevenBlocks blocks;
  const Call call{{.collective = fcclCollAlltoAllV, .dtype = fcclInt8, .count = 1}, nullptr, nullptr, {}, &blocks};
  EXPECT_EQ(route_of({call, shape, {}, {}, 0, true, true}).piece, shape.pair_slot_bytes());
}

TEST(Route, tells_waits_for_others_from_the_copying_of_many_ranks) {
  const Route slots{.path = Path::ring, .piece = 1 << 18};
  const Tuning tuning{.long_wait = 1e-3, .copied_a_second = 8e9};
  EXPECT_FALSE(waited_long(slots, 4, 16, 16 * 1.4e-3, tuning));
  EXPECT_TRUE(waited_long(slots, 4, 16, 16 * 1.6e-3, tuning));
  EXPECT_FALSE(waited_long(slots, 64, 1, 130e-3, tuning));
  EXPECT_FALSE(waited_long({.path = Path::attach, .piece = 1 << 18}, 4, 1, 1, tuning));
}

}  // namespace
}  // namespace fccl::core
