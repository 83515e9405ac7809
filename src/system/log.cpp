// The log, laid out by spdlog.
#include "system/log.h"

#include <pthread.h>
#include <spdlog/pattern_formatter.h>

#include <atomic>
#include <cstdio>
#include <mutex>

#include "base/check.h"

namespace fccl {
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

// Held while a line is laid out, and while the process forks, since the C library's lock of the time zone would stay taken in
// the child. Not while it is written, which may take for ever.
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
  // A whole line in one write; a fork has the lock of stderr anew.
  (void)std::fwrite(text.data(), 1, text.size(), stderr);
}

}  // namespace fccl
