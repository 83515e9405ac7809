// Row: one answer of a probe, and how it is written: as one line of JSON, the one format of all probes.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace fccl::gpu {

// measured: a figure. works, unsupported: a feature, tried. wrong: data came out other than it had to. failed: a call or a
// process did not do what it must. not_run: nothing was tried.
enum class Verdict { measured, works, unsupported, wrong, failed, not_run };

struct Row {
  std::string what;
  Verdict verdict = Verdict::measured;
  std::optional<double> value = std::nullopt;
  std::string unit = {};
  std::string note = {};
};

inline Row measured(std::string what, double value, std::string unit, std::string note = {}) {
  return {std::move(what), Verdict::measured, value, std::move(unit), std::move(note)};
}

inline Row works(std::string what, bool well, std::string note = {}) {
  return {std::move(what), well ? Verdict::works : Verdict::wrong, std::nullopt, {}, std::move(note)};
}

inline Row unsupported(std::string what, std::string note = {}) {
  return {std::move(what), Verdict::unsupported, std::nullopt, {}, std::move(note)};
}

inline Row failed(std::string what, std::string note) {
  return {std::move(what), Verdict::failed, std::nullopt, {}, std::move(note)};
}

// One line without its newline: {"question":Q,"case":"C","what":...,"verdict":...,"value":...,"unit":...,"note":...}.
std::string to_json(int question, std::string_view case_name, const Row& row);

// A rank's row on its way to the process that prints it.
std::string to_packet(const Row& row);
std::optional<Row> from_packet(std::string_view packet);

}  // namespace fccl::gpu
