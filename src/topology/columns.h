// Columns: decides which rank of each host carries which blocks of a call between hosts.
//
//   host 0    ranks 0 1 2 5        columns 0 and 1: as many as the host with the fewest ranks has
//   host 1    ranks 3 4
//
// The i-th ranks of all hosts form column i, and exchange with each other. A host's ranks that are left over (2 and 5) do not
// exchange: their blocks travel with the columns of their host in turn, so the blocks of 2, the third rank there, go with
// column 0, and those of 5, the fourth, with column 1.
#pragma once

#include <span>
#include <vector>

namespace fccl::core {

// Lists the blocks that a column carries, chunk by chunk: chunk c of a plan holds the blocks of one host, or a part of one
// buffer.
struct Blocks {
  std::vector<int> numbers;   // all chunks' blocks, one chunk after another
  std::vector<int> begin{0};  // begin of each chunk in `numbers`, and end of the last one

  int chunks() const { return static_cast<int>(begin.size()) - 1; }
  int size() const { return static_cast<int>(numbers.size()); }
  std::span<const int> of(int chunk) const {
    return std::span(numbers).subspan(static_cast<size_t>(begin[chunk]), static_cast<size_t>(begin[chunk + 1] - begin[chunk]));
  }
  // Returns the number of blocks of the longest chunk.
  int most() const;
};

// An immutable value; all ranks have the same, except for their own place.
class Columns {
 public:
  // `ranks_of_hosts`: the ranks of each host, ascending; hosts in the order of their first ranks.
  Columns(std::vector<std::vector<int>> ranks_of_hosts, int rank);

  int columns() const { return columns_; }
  int hosts() const { return static_cast<int>(ranks_.size()); }
  int ranks() const { return static_cast<int>(host_of_.size()); }
  // Returns the largest number of ranks on a host.
  int most_ranks() const { return most_ranks_; }
  // True if no host has ranks left over.
  bool is_even() const { return most_ranks_ == columns_; }

  // This rank's host, and its place there; a place below columns() is also the number of the rank's column.
  int host() const { return host_; }
  int local() const { return local_; }
  bool has_column() const { return local_ < columns_; }
  std::span<const int> ranks_of(int host) const { return ranks_[host]; }
  int host_of(int rank) const { return host_of_[rank]; }
  int local_of(int rank) const { return local_of_[rank]; }
  // Returns the column that carries a rank's block.
  int carrier_of(int rank) const { return local_of_[rank] % columns_; }
  // Returns the ranks of this rank's column, by host.
  std::vector<int> members() const;

  // Blocks by rank, in one chunk per host.
  const Blocks& by_rank(int column) const { return by_rank_[column]; }
  // Blocks by host and column, in one chunk per host.
  const Blocks& by_host(int column) const { return by_host_[column]; }
  // Blocks by column, in one chunk.
  const Blocks& whole(int column) const { return whole_[column]; }

 private:
  std::vector<std::vector<int>> ranks_;
  std::vector<int> host_of_, local_of_;
  int columns_ = 0, most_ranks_ = 0;
  int host_ = 0, local_ = 0;
  std::vector<Blocks> by_rank_, by_host_, whole_;
};

}  // namespace fccl::core
