// GpuOptions: what a simulated GPU is like, and what it does to those who use it, as a value.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fccl::core::simulated {

struct GpuOptions {
  int ordinal = 0;
  // Delays and the order in which a copy lands are drawn from it, for each queue apart.
  uint64_t seed = 1;

  // The capabilities that it reports.
  bool waits_for_words = true;
  size_t words_per_call = 255;
  size_t queue_entries = 256;  // the number of entries that it tells its users to keep to
  size_t queue_slots = 1000;   // the number at which a queue is full: each copy, word, record and await takes one
  size_t most_pitch = size_t{1} << 31;
  bool pins_read_only = true;
  bool lends = true;
  bool borrows = true;          // false if GPUs of other processes are out of its reach
  bool sums = true;             // false if the library has no kernels for it
  bool is_part_of_gpu = false;  // an instance of MIG
  uint64_t cannot_reach = 0;    // the GPUs of this process that are out of its reach, a bit for each ordinal
  // CUDA_DEVICE_MAX_CONNECTIONS: so many queues for words and kernels, and for copies in each direction (connections.h).
  int connections = 8;
  // True if pin, make and drop wait until nothing is outstanding, as they may; calls that free memory always wait.
  bool set_up_waits = true;
  // True if a kernel is loaded by its first launch, as with CUDA_MODULE_LOADING=LAZY.
  bool loads_lazily = true;
  // True if copies take the host's address of memory that was pinned later, as CUDA's do; a Device's users may not count on it.
  bool takes_host_addresses = false;
  // True if what a queue writes to memory that others see is kept from them until its next word, kernel or mark, or until it
  // is idle (shadow.h).
  bool keeps_back = true;
  int lands_late_us = 0;  // so long what was kept back takes to land, while its queue stands still

  // An operation in four is late by at most this.
  int delay_us = 60;
  // The calls and operations, counted from 1, with which something happens; 0 for never.
  uint64_t fails_call = 0;           // this call returns an error, once
  uint64_t breaks_at_operation = 0;  // from here on nothing is done, and every call returns an error
  uint64_t stops_at_operation = 0;   // from here on nothing is done, and nobody says so

  // Misuse aborts with a sentence; else it is an error.
  bool abort_on_misuse = true;
};

}  // namespace fccl::core::simulated
