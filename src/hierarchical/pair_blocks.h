// PairBlocks: the blocks that a column carries of a call with a block for each pair of ranks, and their lengths.
//
//   given    from each rank of this host whose blocks the column carries to each rank of another host. Chunk c is for host c,
//            ordered by rank of this host, then by rank of host c
//   taken    likewise from ranks of another host to each rank of this one; chunk c is from host c
//
// A block's number is its place. Blocks between ranks of one host stay there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/call.h"
#include "hierarchical/task.h"
#include "topology/columns.h"

namespace fccl::core {

// One rank has one per lane; the one thread that runs the lane's current call uses it. Setting the bytes of a call allocates
// nothing.
class PairBlocks {
 public:
  explicit PairBlocks(const Columns& columns);

  // Lists the ranks of other hosts, host by host.
  const std::vector<int>& foreign() const { return foreign_; }
  const Blocks& given() const { return given_.blocks; }
  const Blocks& taken() const { return taken_.blocks; }
  // Returns the place of a block from a rank of this host that this column carries, by that rank's place on its host, to a rank
  // of another host.
  int place_given(int local, int to) const;
  // Returns the place of a block from the n-th foreign rank of this column to a rank of this host, by that rank's place on its
  // host.
  int place_taken(int n, int local) const { return n * here_ + local; }

  // Makes every block `bytes` long.
  void set_all(size_t bytes);
  // Reads each block's length from its first eight bytes in an exchange of counts.
  void read(const WireSide& given, const WireSide& taken);
  // Places the blocks in the user's buffers. Blocks of other ranks lie elsewhere, so only the bytes of theirs count.
  void place_in_buffers(const Layout& input, const Layout& output);
  Layout given_layout() const { return Layout::of_ranges(given_.ranges); }
  Layout taken_layout() const { return Layout::of_ranges(taken_.ranges); }

 private:
  struct Side {
    Blocks blocks;
    std::vector<int> others;  // by place: the rank of another host that sends or gets the block
    std::vector<ByteRange> ranges;

    void add(int other);
    void end_chunk();
    void read(const WireSide& from);
    void place_in(const Layout& buffer);
  };

  const Columns& columns_;
  int here_;  // ranks of this host
  std::vector<int> foreign_;
  Side given_, taken_;
};

}  // namespace fccl::core
