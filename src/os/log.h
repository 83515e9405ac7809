// The log: one line on stderr per event.
#pragma once

#include <string>

namespace fccl::core {

enum class LogLevel { error, warn, info, debug };

// Sets the level of the whole process: "off", "error", "warn", "info" or "debug".
void set_log_level(const std::string& level);
// Writes a line. Any thread may call, but never on the hot path.
void log(LogLevel level, const std::string& line);

}  // namespace fccl::core
