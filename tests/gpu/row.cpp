// Writes rows as JSON, and carries them between processes.
#include "row.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

namespace fccl::gpu {

namespace {

constexpr std::array<const char*, 6> kVerdicts = {"measured", "works", "unsupported", "wrong", "failed", "not run"};
constexpr char kSeparator = '\x1f';

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char each : text) {
    if (each == '"' || each == '\\') {
      out += '\\';
      out += each;
    } else if (static_cast<unsigned char>(each) < 0x20) {
      out += ' ';
    } else {
      out += each;
    }
  }
  return out + '"';
}

std::string number(const std::optional<double>& value) {
  if (!value || !std::isfinite(*value)) return "null";
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.6g", *value);
  return text.data();
}

}  // namespace

std::string to_json(int question, std::string_view case_name, const Row& row) {
  return "{\"question\":" + std::to_string(question) + ",\"case\":" + quoted(case_name) + ",\"what\":" + quoted(row.what) +
         ",\"verdict\":" + quoted(kVerdicts.at(static_cast<size_t>(row.verdict))) + ",\"value\":" + number(row.value) +
         ",\"unit\":" + quoted(row.unit) + ",\"note\":" + quoted(row.note) + "}";
}

std::string to_packet(const Row& row) {
  return std::to_string(static_cast<int>(row.verdict)) + kSeparator + number(row.value) + kSeparator + row.what + kSeparator +
         row.unit + kSeparator + row.note;
}

std::optional<Row> from_packet(std::string_view packet) {
  std::array<std::string_view, 5> fields;
  for (size_t index = 0; index < fields.size(); ++index) {
    const size_t end = index + 1 < fields.size() ? packet.find(kSeparator) : packet.size();
    if (end == std::string_view::npos) return std::nullopt;
    fields[index] = packet.substr(0, end);
    packet.remove_prefix(std::min(packet.size(), end + 1));
  }
  unsigned verdict = 0;
  std::from_chars(fields[0].data(), fields[0].data() + fields[0].size(), verdict);
  if (verdict >= kVerdicts.size()) return std::nullopt;
  Row row{std::string(fields[2]), static_cast<Verdict>(verdict), std::nullopt, std::string(fields[3]), std::string(fields[4])};
  double value = 0;
  if (std::from_chars(fields[1].data(), fields[1].data() + fields[1].size(), value).ec == std::errc()) row.value = value;
  return row;
}

}  // namespace fccl::gpu
