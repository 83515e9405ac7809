// The log: one line on stderr per event.
#pragma once

#include <string>

namespace fccl {

enum class LogLevel { error, warn, info, debug };

// "off", "error", "warn", "info" or "debug"; holds for the whole process.
void set_log_level(const std::string& level);
// Any thread; never on the hot path.
void log(LogLevel level, const std::string& line);

}  // namespace fccl
