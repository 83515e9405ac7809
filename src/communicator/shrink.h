// Shrink: how the ranks that go on make a communicator without the others, also after the old one has failed.
#pragma once

#include <memory>
#include <vector>

#include "communicator/control.h"
#include "communicator/create_options.h"

namespace fccl {

class Columns;
struct Parts;

// Lives during one call of shrink, on the thread that issues the parent's calls, of which it makes none: the survivors meet by
// the boards in the memory that they share, which outlives any failure. An error leaves the parent as it was.
class Shrink {
 public:
  // `seen`: of each rank the number of the last shrink that this rank has heard of, kept from one shrink to the next.
  Shrink(Control& parent, const Columns& columns, std::vector<uint64_t>& seen)
      : parent_(parent), columns_(columns), seen_(seen) {}

  // Whether ranks spread like this can shrink.
  static Result<void> check(const Columns& columns);
  // This rank's parts of the communicator without `excluded`, which names other ranks, each once.
  Result<std::unique_ptr<Parts>> make(const std::vector<int>& excluded, const CreateOptions& options);

 private:
  Result<std::unique_ptr<Parts>> meet(const ShrinkOffer& mine, const CreateOptions& options);
  Result<void> await_survivors(const ShrinkOffer& mine, std::chrono::milliseconds at_most);
  Result<bool> has_come(int rank, const ShrinkOffer& mine);
  bool differ(const ShrinkOffer& mine, const ShrinkOffer& theirs) const;
  bool is_news(int rank, const ShrinkOffer& offer) const;
  void see_all();
  Result<void> check_survivors_alive() const;
  tl::unexpected<Error> difference(int rank, const ShrinkOffer& mine, const ShrinkOffer& theirs);
  std::vector<int> excluded_by(const ShrinkOffer& offer) const;

  Control& parent_;
  const Columns& columns_;
  std::vector<uint64_t>& seen_;
  std::vector<int> survivors_;
};

}  // namespace fccl
