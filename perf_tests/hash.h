// The numbers behind all test data: the same three indices always give the same bits.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fccl::perf {

// A hash in which every bit of `x` reaches every bit of the result (the finaliser of SplitMix64).
constexpr std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// The hashes of one trial and rank, one per index.
class HashStream {
 public:
  constexpr HashStream(std::uint64_t trial, int rank) : start_(mix(kStep * (trial + 1) + static_cast<std::uint64_t>(rank))) {}
  constexpr std::uint64_t operator[](std::size_t index) const { return mix(start_ + kStep * index); }

 private:
  static constexpr std::uint64_t kStep = 0x9e3779b97f4a7c15;
  std::uint64_t start_;
};

constexpr std::uint64_t hash_of(std::uint64_t trial, int rank, std::size_t index) { return HashStream(trial, rank)[index]; }

}  // namespace fccl::perf
