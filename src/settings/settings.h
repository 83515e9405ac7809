// Settings: all environment variables of FCCL, read in one place.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"

namespace fccl::core {

// The values of the FCCL_* variables. Each communicator keeps the value that it was made with. The table in settings.cpp gives
// meanings and allowed values.
struct Settings {
  std::chrono::milliseconds timeout{600'000};
  std::chrono::milliseconds init_timeout{300'000};
  size_t mailbox_bytes = 4096;
  size_t slot_bytes = 256 * 1024;
  std::string cross_memory_attach = "auto";
  size_t arena_bytes = 0;
  std::string mapped = "on";
  std::string host_id;
  std::string interface_name;
  std::string nccl_interface_name;
  std::string gloo_interface_name;
  std::string master_address;
  std::string socket_ports;
  std::string transport = "auto";
  std::string transport_plugin;
  std::string nics;
  std::string wire_dtype = "call";
  size_t wire_slot_bytes = 256 * 1024;
  std::string costs;
  std::string algorithm;
  std::string cuda_path = "auto";
  size_t cuda_buffer_bytes = 32 * 1024 * 1024;
  static constexpr size_t kCudaLandingStep = 16384;  // cuda_landing_bytes is a multiple of it
  size_t cuda_landing_bytes = 16 * 1024 * 1024;
  size_t cuda_queue_entries = 256;
  size_t cuda_blocks = 8;
  std::string log_level = "warn";
  std::string nccl_debug;
  size_t metrics_port = 0;
  std::string metrics_address = "127.0.0.1";

  // Returns the settings that must be equal on all ranks, one per line: they decide which path a message takes.
  std::string agreement() const;
};

// The allowed values of a variable, and the field that it sets.
struct Seconds {
  std::chrono::milliseconds Settings::* field;
  std::chrono::milliseconds least, most;
};
struct Bytes {
  size_t Settings::* field;
  size_t multiple, most;
};
struct Number {
  size_t Settings::* field;
  size_t least, most;
};
struct Text {
  std::string Settings::* field;
  const char* allowed = "any";
  std::string (*fault_of)(std::string_view text) = nullptr;  // returns what is wrong with a text, "" if nothing is
};
struct Choice {
  std::string Settings::* field;
  std::span<const std::string_view> choices;
};

// One row of the table.
struct Setting {
  enum class Scope { local, agreed };

  const char* variable;
  std::variant<Seconds, Bytes, Number, Text, Choice> kind;
  Scope scope;  // agreed: must be equal on all ranks, which the bootstrap checks
  const char* meaning;
};

std::span<const Setting> every_setting();

// Returns the value of a setting as it would appear in the environment.
std::string text_of(const Setting& setting, const Settings& settings);

// Reads the environment and sets the level of the log. Its first call also warns about unknown FCCL_* variables. Error:
// fcclInvalidUsage with the variable, its value and the allowed values.
Result<Settings> read_settings();

// Reads settings from any source of texts; an empty text means not set.
Result<Settings> parse_settings(const std::function<std::string_view(const char* variable)>& text_of_variable);

// Returns one warning for each "NAME=value" whose name looks like a setting but is unknown.
std::vector<std::string> warnings_of(std::span<const std::string_view> environment);

}  // namespace fccl::core
