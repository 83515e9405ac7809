// Fills the tables of blocks between pairs of ranks, and their lengths.
#include "hierarchical/pair_blocks.h"

#include "kernels/copy.h"

namespace fccl::core {

PairBlocks::PairBlocks(const Columns& columns)
    : columns_(columns), here_(static_cast<int>(columns.ranks_of(columns.host()).size())) {
  const int own = columns.host(), column = columns.local();
  const bool has_column = columns.has_column();
  const auto carried = has_column ? columns.by_rank(column).of(own) : std::span<const int>{};
  for (int host = 0; host < columns.hosts(); ++host) {
    if (host != own) {
      foreign_.insert(foreign_.end(), columns.ranks_of(host).begin(), columns.ranks_of(host).end());
      for (size_t i = 0; i < carried.size(); ++i)
        for (const int to : columns.ranks_of(host)) given_.add(to);
      for (int i = 0; has_column && i < static_cast<int>(columns.by_rank(column).of(host).size()); ++i)
        for (int local = 0; local < here_; ++local) taken_.add(columns.by_rank(column).of(host)[static_cast<size_t>(i)]);
    }
    given_.end_chunk();
    taken_.end_chunk();
  }
}

void PairBlocks::Side::add(int other) {
  blocks.numbers.push_back(blocks.size());
  others.push_back(other);
  ranges.emplace_back();
}

void PairBlocks::Side::end_chunk() { blocks.begin.push_back(blocks.size()); }

int PairBlocks::place_given(int local, int to) const {
  const int host = columns_.host_of(to);
  const int of_each = static_cast<int>(columns_.ranks_of(host).size());
  return given_.blocks.begin[static_cast<size_t>(host)] + local / columns_.columns() * of_each + columns_.local_of(to);
}

void PairBlocks::set_all(size_t bytes) {
  for (Side* side : {&given_, &taken_})
    for (ByteRange& range : side->ranges) range = {0, bytes};
}

void PairBlocks::read(const WireSide& given, const WireSide& taken) {
  given_.read(given);
  taken_.read(taken);
}

// Every piece holds at least that number.
void PairBlocks::Side::read(const WireSide& from) {
  for (int place = 0; place < blocks.size(); ++place) {
    uint64_t bytes = 0;
    copy_bytes(&bytes, from.at(place, place, 0), sizeof bytes);
    ranges[static_cast<size_t>(place)] = {0, bytes};
  }
}

void PairBlocks::place_in_buffers(const Layout& input, const Layout& output) {
  given_.place_in(input);
  taken_.place_in(output);
}

void PairBlocks::Side::place_in(const Layout& buffer) {
  for (size_t place = 0; place < ranges.size(); ++place) ranges[place].offset = buffer.offset(others[place]);
}

}  // namespace fccl::core
