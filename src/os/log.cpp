// Formats lines by spdlog, in a way that survives forks.
#include "os/log.h"

#include <pthread.h>
#include <spdlog/pattern_formatter.h>

#include <atomic>
#include <cstdio>
#include <mutex>

#include "base/check.h"

namespace fccl::core {
namespace {

spdlog::level::level_enum level_of(LogLevel level) {
  switch (level) {
    case LogLevel::error:
      return spdlog::level::err;
    case LogLevel::warn:
      return spdlog::level::warn;
    case LogLevel::info:
      return spdlog::level::info;
    case LogLevel::debug:
      return spdlog::level::debug;
  }
  return spdlog::level::err;
}

constinit std::atomic<spdlog::level::level_enum> least{spdlog::level::warn};

// Held while a line is formatted, and while the process forks: otherwise the child could find the C library's lock of the time
// zone taken for ever. Not held while the line is written, which may block for ever.
constinit std::mutex layout;
// Never destroyed, since a detached thread may log while the process exits.
spdlog::pattern_formatter& formatter = *new spdlog::pattern_formatter("%Y-%m-%dT%H:%M:%S.%e [%P] fccl %l: %v");

[[maybe_unused]] const bool kSurvivesForks = [] {
  const int registered = pthread_atfork([] { layout.lock(); }, [] { layout.unlock(); }, [] { layout.unlock(); });
  check(registered == 0, "a fork handler can be registered");
  return true;
}();

}  // namespace

void set_log_level(const std::string& level) { least = spdlog::level::from_str(level); }

void log(LogLevel level, const std::string& line) {
  if (level_of(level) < least) return;
  spdlog::memory_buf_t text;
  {
    const std::lock_guard lock(layout);
    formatter.format({"fccl", level_of(level), line}, text);
  }
  // Writes the whole line at once. The C library renews the lock of stderr in a fork.
  (void)std::fwrite(text.data(), 1, text.size(), stderr);
}

}  // namespace fccl::core
