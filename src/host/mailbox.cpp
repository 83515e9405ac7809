// The mailbox: runs small collectives by payloads beside the word.
#include <cstddef>

#include "host/lane.h"
#include "host/phases.h"
#include "host/put_slices.h"
#include "host/task.h"
#include "kernels/copy.h"

namespace fccl::core {
namespace {

// Copies or reduces this rank's results out of the boxes.
class Delivery {
 public:
  Delivery(Lane& lane, const Task& task)
      : lane_(lane),
        task_(task),
        row_(task.call.signature.row()),
        input_(task.call.input(lane.ranks())),
        output_(task.call.output(lane.ranks())),
        takes_(output_.total() != 0 && row_.takes(lane.rank(), task.call.signature.root)) {}

  // Returns how many bytes this rank puts beside its word. A root that takes the result reads its own input where it lies.
  size_t given() const { return gives_to_peers(task_.call.signature, lane_.rank()) ? input_.total() : 0; }
  // Returns the range of those bytes that no peer takes.
  ByteRange own() const {
    const int me = lane_.rank();
    const bool has_own = given() != 0 && row_.input == Extent::block_per_rank;
    return has_own ? ByteRange{input_.offset(me), input_.bytes(me)} : ByteRange{};
  }
  // Takes this rank's own input, while the words of its peers are on their way.
  void take_own() {
    if (takes_) take(lane_.rank(), static_cast<const std::byte*>(task_.call.send), task_.call.scalar);
  }
  // Takes the peers' payloads. Every peer must have entered the same call.
  void take_others() {
    if (!takes_) return;
    const Signature& s = task_.call.signature;
    for (int i = 1; i < lane_.ranks(); ++i) {
      const int from = lane_.peer(i);
      take(from, lane_.payload_of(from, given_by(from)),
           s.op == ReduceOp::premul_sum ? lane_.record_of(from).scalar : Scalar{});
    }
    if (!row_.reduces) return;
    const size_t count = row_.is_uneven() ? output_.total() / size_of(s.dtype) : s.count;
    task_.reduce(task_.call.recv, lane_.sources.data(), lane_.ranks(), count, lane_.scalars.data());
  }

 private:
  size_t given_by(int from) const { return row_.is_uneven() && !row_.reduces ? output_.bytes(from) : input_.total(); }
  void take(int from, const std::byte* payload, const Scalar& scalar) {
    if (!row_.gives(from, task_.call.signature.root)) return;
    const std::byte* block = payload + input_.offset(lane_.rank());
    if (!row_.reduces) {
      copy_bytes(static_cast<std::byte*>(task_.call.recv) + output_.offset(from), block, output_.bytes(from));
      return;
    }
    lane_.sources[from] = block;
    lane_.scalars[from] = scalar;
  }

  Lane& lane_;
  const Task& task_;
  const Collective& row_;
  const Layout input_, output_;
  const bool takes_;
};

}  // namespace

Phase alone([[maybe_unused]] FrameMemory& frame, Lane& lane, [[maybe_unused]] Route route, Task task) {
  Delivery delivery(lane, task);
  delivery.take_own();
  delivery.take_others();
  co_return Done{};
}

Phase mailbox([[maybe_unused]] FrameMemory& frame, Lane& lane, [[maybe_unused]] Route route, Task task) {
  Delivery delivery(lane, task);
  lane.enter(task.call, task.number, task.call.send, delivery.given(), delivery.own());
  delivery.take_own();
  for (int i = 1; i < lane.ranks(); ++i) {
    const int peer = lane.peer(i);
    co_await lane.entered(peer);
    if (!lane.agrees(peer)) co_return Differs{lane.rank_of(peer)};
  }
  delivery.take_others();
  co_return Done{};
}

}  // namespace fccl::core
