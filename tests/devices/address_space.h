// AddressSpace: what lies where for the simulated GPUs of this process: memory, queues and marks.
//
// One for all GPUs, as CUDA's unified addresses are. Any thread may ask; no answer orders anything (devices/unseen.h).
#pragma once

#include <cstddef>
#include <cstdint>

namespace fccl::core::simulated {

class Gpu;

struct Region {
  enum class Kind : uint8_t {
    device,          // `begin` may be touched by nobody, the GPU's threads use `real`
    piece,           // the same, of memory that is mapped in pieces (fake_driver/pieces.cpp, lent_memory.h): those side by
                     // side are one, and other GPUs use it only if they are let
    managed,         // everybody uses `begin`
    pinned,          // made by the driver: everybody uses `begin`
    registered,      // the host's address of memory that was pinned later
    device_address,  // the GPU's address of such memory; touched by nobody
    queue,
    mark,
  };
  std::byte* begin = nullptr;
  size_t bytes = 0;
  std::byte* real = nullptr;  // the address by which the threads of the GPU, and tests, find what lies at `begin`
  Kind kind = Kind::device;
  Gpu* gpu = nullptr;
  std::byte* twin = nullptr;  // the other of the two: registered memory or its device address
  bool read_only = false;     // the GPU may not write there
  // Of a piece: the other GPUs that may read or write it, a bit for each ordinal.
  uint64_t readers = 0;
  uint64_t writers = 0;
};

// False if a byte of it is part of another one.
bool add_region(const Region& region);
// False if none begins there.
bool remove_region(const void* begin);
// Lets another GPU read the piece that begins there, and write it, too, if it `writes`.
void let_use(const void* begin, int ordinal, bool writes);
// The region with this byte.
bool find_region(const void* address, Region& found);
// Any region of this GPU; for its end.
bool find_region_of(const Gpu* gpu, Region& found);

}  // namespace fccl::core::simulated
