// Holds spares as eventfds, opened when the library is loaded.
#include "os/spare_descriptor.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <vector>

#include "os/descriptor.h"

namespace fccl::core {
namespace {

// One spare lets a rank reach the root, the other lets the root accept a rank; both may be in one process.
constexpr int kSpares = 2;

// -1 means spent. Initialised before any code runs, and never destroyed.
constinit std::array<std::atomic<int>, kSpares> spares{-1, -1};

int open_any() { return ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); }

bool refill() {
  for (std::atomic<int>& spare : spares) {
    int spent = -1;
    if (spare.load() != spent) continue;
    const int opened = open_any();
    if (opened >= 0 && !spare.compare_exchange_strong(spent, opened)) ::close(opened);
  }
  return true;
}

const bool kFilled = refill();

}  // namespace

SpareDescriptor::~SpareDescriptor() {
  if (std::ranges::any_of(spares, [](const auto& spare) { return spare.load() < 0; })) refill();
}

bool SpareDescriptor::spend() {
  for (std::atomic<int>& spare : spares)
    if (const int held = spare.exchange(-1); held >= 0) return ::close(held) == 0;
  return false;
}

int lack_of_descriptors(int wanted) {
  std::vector<Descriptor> opened;
  for (int i = 0; i < wanted; ++i)
    if (!opened.emplace_back(open_any())) return errno;
  return 0;
}

}  // namespace fccl::core
