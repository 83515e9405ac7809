// PairBlocks: which blocks of a call with a block for each pair of ranks a column carries, and how long they are.
//
//   given    from each rank of this host whose blocks the column carries to each rank of another host, chunk by chunk: chunk c
//            is for host c; in it rank by rank of this host, for each the ranks of that one
//   taken    likewise from ranks of another host to each rank of this one; chunk c is from host c
//
// A block is numbered by its place. What ranks of one host have for each other stays there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/call.h"
#include "hierarchical/columns.h"
#include "hierarchical/task.h"

namespace fccl {

// One rank's, of one lane; used by the one thread that runs the lane's current call. Setting the bytes of a call allocates
// nothing.
class PairBlocks {
 public:
  explicit PairBlocks(const Columns& columns);

  // The ranks of other hosts, host by host.
  const std::vector<int>& foreign() const { return foreign_; }
  const Blocks& given() const { return given_.blocks; }
  const Blocks& taken() const { return taken_.blocks; }
  // Of a block from a rank of this host that this column carries, by its place there, to a rank of another one.
  int place_given(int local, int to) const;
  // Of the n-th of the other hosts' ranks that this column carries to a rank of this host, by its place there.
  int place_taken(int n, int local) const { return n * here_ + local; }

  // Every block has so many bytes.
  void set_all(size_t bytes);
  // As those blocks say by which the counts were told, each by its first eight bytes.
  void read(const WireSide& given, const WireSide& taken);
  // Where blocks lie in the user's buffers, if this rank's own are all that the column carries.
  void place_in_buffers(const Layout& input, const Layout& output);
  Layout given_layout() const { return Layout::of_ranges(given_.ranges); }
  Layout taken_layout() const { return Layout::of_ranges(taken_.ranges); }

 private:
  struct Side {
    Blocks blocks;
    std::vector<int> others;  // by place: the rank of another host that the block is for or from
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

}  // namespace fccl
