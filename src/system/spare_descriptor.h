// Spare descriptors: what a process keeps open for the moment in which it may open nothing more.
#pragma once

namespace fccl {

// The right to one more descriptor. The process holds two back from the start of the library on, so that a rank which is short
// of descriptors can still tell the others so. Taken back when destroyed, as far as that goes by then. Any thread has its own.
class SpareDescriptor {
 public:
  SpareDescriptor() = default;
  SpareDescriptor(const SpareDescriptor&) = delete;
  SpareDescriptor& operator=(const SpareDescriptor&) = delete;
  ~SpareDescriptor();

  // Lets go of one: the next descriptor may be opened. False: none was left.
  bool spend();
};

// The errno that says why this process cannot open so many descriptors more; 0 if it can.
int lack_of_descriptors(int wanted);

}  // namespace fccl
