// Meeting: the ranks of a benchmark find each other over TCP, by the environment that ./dev cluster and torchrun set.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "system/descriptor.h"

namespace fccl::benchmarks {

// One per process; one thread. All ranks call the same functions in the same order. Whatever fails ends the process with a
// sentence on stderr: a benchmark has nothing to save.
class Meeting {
 public:
  // From RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR (a number) and MASTER_PORT; as many ranks on each host.
  Meeting();

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  int local_rank() const { return local_rank_; }
  int local_ranks() const { return local_ranks_; }
  int host() const { return rank_ / local_ranks_; }
  int hosts() const { return ranks_ / local_ranks_; }

  // What each rank gives, by rank.
  template <class T>
  std::vector<T> all_gather(const T& mine) {
    std::vector<T> all(static_cast<size_t>(ranks_));
    all_gather_bytes(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
    return all;
  }
  void barrier() { all_gather('b'); }

 private:
  void all_gather_bytes(std::span<const std::byte> mine, std::span<std::byte> all);

  int rank_, ranks_, local_rank_, local_ranks_;
  // To all other ranks on rank 0, by rank; else one, to rank 0.
  std::vector<Descriptor> sockets_;
};

// Ends the process.
[[noreturn]] void give_up(const char* what);
// All of it, over a socket that waits.
void write_all(int socket, std::span<const std::byte> bytes);
void read_all(int socket, std::span<std::byte> bytes);

}  // namespace fccl::benchmarks
