// Spare descriptors: held in reserve for the moment when the process can open no more.
#pragma once

namespace fccl::core {

// The right to one more descriptor. The process reserves two when the library is loaded, so that a rank that is short of
// descriptors can still report it to the others. The destructor reserves the spent ones again, if the process can open them by
// then. Each thread makes its own object.
class SpareDescriptor {
 public:
  SpareDescriptor() = default;
  SpareDescriptor(const SpareDescriptor&) = delete;
  SpareDescriptor& operator=(const SpareDescriptor&) = delete;
  ~SpareDescriptor();

  // Releases one spare, so that the next descriptor can be opened. Returns false if none was left.
  bool spend();
};

// Returns 0 if this process can open `wanted` more descriptors, else the errno of the failure.
int lack_of_descriptors(int wanted);

}  // namespace fccl::core
