// Settings: everything FCCL takes from the environment, read at one place.
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

namespace fccl {

// The values of the FCCL_* variables. A plain value; each communicator keeps the one it was made with. What they mean and may
// be stands in the table of settings.cpp.
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
  std::string nics;
  std::string wire_dtype = "call";
  size_t wire_slot_bytes = 256 * 1024;
  std::string costs;
  std::string algorithm;
  std::string cuda_path = "auto";
  size_t cuda_buffer_bytes = 32 * 1024 * 1024;
  size_t cuda_queue_entries = 256;
  std::string log_level = "warn";
  std::string nccl_debug;
  size_t metrics_port = 0;
  std::string metrics_address = "127.0.0.1";

  // The lines that must be equal on all ranks, since they decide which path a message takes.
  std::string agreement() const;
};

// What a variable may be, and the field that it sets.
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
  std::string (*fault_of)(std::string_view text) = nullptr;  // what is wrong with a text, "" if nothing is
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

// The value of a setting as one would write it into the environment.
std::string text_of(const Setting& setting, const Settings& settings);

// Reads the environment, sets the level of the log, and the first time warns of FCCL_* variables that do not exist. Error:
// fcclInvalidUsage, naming the variable, its value and what it may be.
Result<Settings> read_settings();

// The same from any source of texts; an empty one is not set.
Result<Settings> parse_settings(const std::function<std::string_view(const char* variable)>& text_of_variable);

// One warning for each "NAME=value" whose name looks like a setting and is none.
std::vector<std::string> warnings_of(std::span<const std::string_view> environment);

}  // namespace fccl
