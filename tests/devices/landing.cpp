// Landing: cuts a copy into pieces and does them in a shuffled order.
#include "devices/landing.h"

#include <cstring>
#include <thread>
#include <utility>
#include <vector>

namespace fccl::core::simulated {

namespace {

constexpr std::byte kPoison{0xd5};
constexpr size_t kMostRowsInPieces = 64;

struct Piece {
  size_t row = 0;
  size_t begin = 0;
  size_t bytes = 0;
};

std::vector<Piece> pieces_of(const RealCopy& copy, Dice& dice) {
  std::vector<Piece> pieces;
  for (size_t row = 0; row < copy.rows; ++row) {
    const size_t cuts = copy.rows > kMostRowsInPieces ? 0 : dice.up_to(copy.rows == 1 ? 5 : 1);
    size_t begin = 0;
    for (size_t cut = 0; cut < cuts && begin < copy.bytes; ++cut) {
      const size_t bytes = dice.up_to(copy.bytes - begin);
      if (bytes == 0) continue;
      pieces.push_back({row, begin, bytes});
      begin += bytes;
    }
    if (begin < copy.bytes) pieces.push_back({row, begin, copy.bytes - begin});
  }
  for (size_t left = pieces.size(); left > 1; --left) std::swap(pieces[left - 1], pieces[dice.up_to(left - 1)]);
  return pieces;
}

}  // namespace

void land(const RealCopy& copy, Dice& dice) {
  if (copy.is_seen) poison(copy);
  arrive(copy, dice);
}

void poison(const RealCopy& copy) {
  for (size_t row = 0; row < copy.rows; ++row) {
    std::memset(copy.to + row * copy.to_pitch, static_cast<int>(kPoison), copy.bytes);
  }
}

void arrive(const RealCopy& copy, Dice& dice) {
  for (const Piece& piece : pieces_of(copy, dice)) {
    if (copy.is_seen && dice.per_mille(100)) std::this_thread::yield();
    std::memcpy(copy.to + piece.row * copy.to_pitch + piece.begin, copy.from + piece.row * copy.from_pitch + piece.begin,
                piece.bytes);
  }
}

}  // namespace fccl::core::simulated
