// Counts what each path reads, as its loops do.
#include "host/bytes_read.h"

#include "base/call.h"
#include "host/shards.h"

namespace fccl::core {
namespace {

// One rank's part of a call.
class Reads {
 public:
  Reads(const Call& call, int rank, int ranks)
      : call_(call),
        row_(call.signature.row()),
        input_(call.input(ranks)),
        output_(call.output(ranks)),
        rank_(rank),
        ranks_(ranks) {}

  bool reduces() const { return row_.reduces; }
  // This rank's input and output.
  size_t given() const { return row_.gives(rank_, root()) ? input_.total() : 0; }
  size_t received() const { return row_.takes(rank_, root()) ? output_.total() : 0; }
  // The rank puts these bytes where peers find them.
  size_t put_for_peers() const {
    size_t bytes = 0;
    for (int peer = 0; peer < ranks_; ++peer) {
      if (peer == rank_ || !row_.moves(rank_, peer, root())) continue;
      if (row_.input == Extent::one_block) return input_.total();
      bytes += input_.bytes(peer);
    }
    return bytes;
  }
  // The rank copies these into the output. Its own block may lie there already.
  size_t taken() const {
    size_t bytes = 0;
    for (int from = 0; from < ranks_; ++from)
      if (row_.moves(from, rank_, root()) && (from != rank_ || !is_in_place())) bytes += output_.bytes(from);
    return bytes;
  }
  // The blocks of all ranks that this one adds.
  size_t added() const { return row_.takes(rank_, root()) ? static_cast<size_t>(ranks_) * own_block() : 0; }
  size_t added_shards() const { return static_cast<size_t>(ranks_) * shard(); }
  size_t others_of_shard() const { return input_.total() - shard(); }
  size_t results(bool without_own) const {
    if (!row_.takes(rank_, root())) return 0;
    return output_.total() - (without_own ? shard() * call_.signature.widening() : 0);
  }

 private:
  int root() const { return call_.signature.root; }
  size_t own_block() const { return input_.bytes(rank_); }
  size_t shard() const { return shards_of(call_.signature, call_.signature.dtype, ranks_).bytes(rank_); }
  bool is_in_place() const {
    return static_cast<const std::byte*>(call_.send) + input_.offset(rank_) ==
           static_cast<const std::byte*>(call_.recv) + output_.offset(rank_);
  }

  const Call& call_;
  const Collective& row_;
  const Layout input_, output_;
  int rank_;
  int ranks_;
};

size_t moved(const Reads& reads, Path path) {
  return (path == Path::ring || path == Path::mailbox ? reads.put_for_peers() : 0) + reads.taken();
}

size_t reduced(const Reads& reads, const Route& route) {
  const bool is_ring = route.path == Path::ring;
  if (route.variant == Variant::shards)
    return (is_ring ? reads.others_of_shard() : 0) + reads.added_shards() + reads.results(route.to_outputs);
  return (is_ring || route.path == Path::mailbox ? reads.put_for_peers() : 0) + reads.added();
}

}  // namespace

size_t bytes_read(const Route& route, const Call& call, int rank, int ranks) {
  const Reads reads(call, rank, ranks);
  if (route.path == Path::across) return bytes_of(call, rank, ranks);
  return reads.reduces() ? reduced(reads, route) : moved(reads, route.path);
}

size_t bytes_of(const Call& call, int rank, int ranks) {
  const Reads reads(call, rank, ranks);
  return reads.given() + reads.received();
}

}  // namespace fccl::core
