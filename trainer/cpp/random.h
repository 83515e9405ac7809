// Random numbers as numpy.random.default_rng draws them, so that both trainers learn from the same sequences: PCG64 behind
// numpy's SeedSequence, and Lemire's way to numbers below a bound.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace trainer {

__extension__ using uint128 = unsigned __int128;

// Hashes values into words; each use changes what the next one is hashed with.
struct Hash {
  uint32_t factor, step;
  uint32_t operator()(uint32_t value) {
    value ^= factor;
    factor *= step;
    value *= factor;
    return value ^ (value >> 16);
  }
};

inline std::array<uint64_t, 4> seed_sequence(const std::vector<uint32_t>& entropy) {
  std::array<uint32_t, 4> pool{};
  Hash in{0x43b0d7e5, 0x931e8875};
  const auto mix = [&](uint32_t& word, uint32_t value) {
    word = 0xca01f9dd * word - 0x4973f715 * in(value);
    word ^= word >> 16;
  };
  for (size_t i = 0; i < pool.size(); ++i) pool[i] = in(i < entropy.size() ? entropy[i] : 0);
  for (size_t from = 0; from < pool.size(); ++from)
    for (size_t to = 0; to < pool.size(); ++to)
      if (from != to) mix(pool[to], pool[from]);
  Hash out{0x8b51f9dd, 0x58f38ded};
  std::array<uint64_t, 4> state{};
  for (size_t i = 0; i < 8; ++i) state[i / 2] |= static_cast<uint64_t>(out(pool[i % 4])) << (32 * (i % 2));
  return state;
}

// PCG64 of 128 bits of state, handing out halves of its words.
class Pcg64 {
 public:
  explicit Pcg64(const std::array<uint64_t, 4>& seed)
      : increment_((((static_cast<uint128>(seed[2]) << 64) | seed[3]) << 1) | 1) {
    advance();
    state_ += (static_cast<uint128>(seed[0]) << 64) | seed[1];
    advance();
  }

  uint32_t next() {
    if (has_half_) return has_half_ = false, half_;
    advance();
    const auto high = static_cast<uint64_t>(state_ >> 64);
    const uint64_t mixed = high ^ static_cast<uint64_t>(state_);
    const int turn = static_cast<int>(high >> 58);
    const uint64_t word = (mixed >> turn) | (mixed << ((64 - turn) & 63));
    has_half_ = true;
    half_ = static_cast<uint32_t>(word >> 32);
    return static_cast<uint32_t>(word);
  }

 private:
  void advance() {
    constexpr uint128 kFactor = (static_cast<uint128>(0x2360ED051FC65DA4) << 64) | 0x4385DF649FCCF645;
    state_ = state_ * kFactor + increment_;
  }

  uint128 increment_, state_ = 0;
  uint32_t half_ = 0;
  bool has_half_ = false;
};

inline void append(std::vector<uint32_t>& entropy, uint64_t number) {
  entropy.push_back(static_cast<uint32_t>(number));
  if (number >> 32) entropy.push_back(static_cast<uint32_t>(number >> 32));
}

// numpy.random.default_rng((seed, step)).integers(0, end, size=count), for an end below 2^32.
inline std::vector<int64_t> draws(uint64_t seed, uint64_t step, uint32_t end, int64_t count) {
  std::vector<uint32_t> entropy;
  append(entropy, seed);
  append(entropy, step);
  Pcg64 generator(seed_sequence(entropy));
  // Products below this would make some numbers likelier than others.
  const uint32_t unfair = (0 - end) % end;
  std::vector<int64_t> numbers;
  while (static_cast<int64_t>(numbers.size()) < count) {
    const uint64_t product = static_cast<uint64_t>(generator.next()) * end;
    if (static_cast<uint32_t>(product) >= unfair) numbers.push_back(static_cast<int64_t>(product >> 32));
  }
  return numbers;
}

}  // namespace trainer
