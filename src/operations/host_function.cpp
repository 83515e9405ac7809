// Calls a host function, marks its thread meanwhile, and turns what it throws into an error.
#include "operations/host_function.h"

#include <fmt/format.h>

#include <exception>

#include "os/forks.h"

namespace fccl::core {
namespace {

// A fork keeps the thread, but not the host function that it was inside: so it holds the count of forks of its process. Every
// blocking call reads it, so reading must not call the loader.
constexpr unsigned kNone = ~0U;
__attribute__((tls_model("initial-exec"))) thread_local unsigned inside_since_fork = kNone;

constexpr const char* kAdvice = "it must catch what it throws";

class Inside {
 public:
  Inside() { inside_since_fork = forks(); }
  ~Inside() { inside_since_fork = kNone; }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
};

}  // namespace

bool is_in_host_function() { return inside_since_fork != kNone && inside_since_fork == forks(); }

// A host function has no caller that could catch its exception.
Result<Advance> HostFunction::advance() {
  const Inside inside;
  try {
    function_(user_data_);
    return Advance::done;
  } catch (const std::exception& error) {
    return fail(fcclInvalidUsage, fmt::format("a host function threw an exception: {}; {}", error.what(), kAdvice));
  } catch (...) {
    return fail(fcclInvalidUsage, fmt::format("a host function threw an object that is not a std::exception; {}", kAdvice));
  }
}

}  // namespace fccl::core
