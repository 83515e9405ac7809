// SlotWalk: walks the pieces that go through a slot in one round.
//
// The pieces of a slice lie side by side in a slot. A slot may be too short for all of them: each turn takes as many as fit.
#pragma once

#include <algorithm>
#include <cstddef>

namespace fccl::core {

// A range for loops: for (const auto [item, offset] : SlotWalk(...)).
class SlotWalk {
 public:
  struct Piece {
    int item;       // number of the piece among those of the slice
    size_t offset;  // in the slot
  };

  class Iterator {
   public:
    Iterator(int item, size_t piece_bytes) : piece_{item, 0}, piece_bytes_(piece_bytes) {}
    Piece operator*() const { return piece_; }
    Iterator& operator++() {
      ++piece_.item;
      piece_.offset += piece_bytes_;
      return *this;
    }
    bool operator==(const Iterator& other) const { return piece_.item == other.piece_.item; }

   private:
    Piece piece_;
    size_t piece_bytes_;
  };

  // Walks the pieces of a turn among the `items` of a slice, of which `per_slot` fit into the slot.
  SlotWalk(int items, int per_slot, int turn, size_t piece_bytes)
      : first_(turn * per_slot), end_(std::max(first_, std::min(items, first_ + per_slot))), piece_bytes_(piece_bytes) {}

  Iterator begin() const { return {first_, piece_bytes_}; }
  Iterator end() const { return {end_, piece_bytes_}; }

 private:
  int first_, end_;
  size_t piece_bytes_;
};

}  // namespace fccl::core
