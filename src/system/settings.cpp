// The one reader of the environment.
#include "system/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <string_view>

namespace fccl {
namespace {

constexpr std::string_view kLogLevels[] = {"off", "error", "warn", "info", "debug"};

std::string_view value_of(const char* variable) {
  const char* value = std::getenv(variable);
  return value == nullptr ? std::string_view{} : std::string_view{value};
}

Result<void> read_seconds(const char* variable, std::chrono::milliseconds& into) {
  const std::string_view text = value_of(variable);
  if (text.empty()) return {};
  double seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc{} || end != text.data() + text.size() || !(seconds >= 0.001) || seconds > 1e6)
    return fail(fcclInvalidUsage, fmt::format("{}={} is no time: give seconds between 0.001 and 1000000", variable, text));
  into = std::chrono::milliseconds(std::llround(seconds * 1000));
  return {};
}

Result<void> read_bytes(const char* variable, size_t largest, size_t& into) {
  const std::string_view text = value_of(variable);
  if (text.empty()) return {};
  size_t bytes = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bytes);
  if (error != std::errc{} || end != text.data() + text.size() || bytes < 64 || bytes > largest || bytes % 64 != 0)
    return fail(fcclInvalidUsage,
                fmt::format("{}={} is no size: give a multiple of 64 between 64 and {}", variable, text, largest));
  into = bytes;
  return {};
}

}  // namespace

std::string Settings::agreement() const {
  return fmt::format("FCCL_MAILBOX_BYTES={}\nFCCL_SLOT_BYTES={}\n", mailbox_bytes, slot_bytes);
}

Result<Settings> read_settings() {
  Settings settings;
  FCCL_TRY(read_seconds("FCCL_TIMEOUT", settings.timeout));
  FCCL_TRY(read_seconds("FCCL_INIT_TIMEOUT", settings.init_timeout));
  FCCL_TRY(read_bytes("FCCL_MAILBOX_BYTES", 64 * 1024, settings.mailbox_bytes));
  FCCL_TRY(read_bytes("FCCL_SLOT_BYTES", 256 * 1024, settings.slot_bytes));
  settings.host_id = value_of("FCCL_HOST_ID");
  settings.interface_name = value_of("FCCL_SOCKET_IFNAME");
  if (const std::string_view level = value_of("FCCL_LOG"); !level.empty()) {
    if (std::find(std::begin(kLogLevels), std::end(kLogLevels), level) == std::end(kLogLevels))
      return fail(fcclInvalidUsage, fmt::format("FCCL_LOG={} is no level: give off, error, warn, info or debug", level));
    settings.log_level = level;
  }
  return settings;
}

}  // namespace fccl
