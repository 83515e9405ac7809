// Fuzzes the values and the names of settings.
#include "fuzz/fuzz.h"
#include "settings/settings.h"

namespace fccl::core::fuzz {

std::vector<std::string> seeds() {
  std::vector<std::string> all;
  for (size_t i = 0; i < every_setting().size(); ++i)
    all.push_back(static_cast<char>(i) + text_of(every_setting()[i], Settings{}));
  all.push_back(std::string(1, '\0') + "1.5e2");
  all.emplace_back("\5FCCL_TIMOUT=30\nPATH=/bin\nFCCL_TORCH=2");
  return all;
}

namespace {

void parse(const Setting& setting, std::string_view text) {
  const auto with = [&](std::string_view value) {
    return parse_settings([&](const char* variable) { return variable == setting.variable ? value : std::string_view{}; });
  };
  const Result<Settings> settings = with(text);
  if (!settings) {
    check(settings.error().message.starts_with(setting.variable), "a refusal names the variable");
    return;
  }
  const std::string written = text_of(setting, *settings);
  const Result<Settings> again = with(written);
  check(again && text_of(setting, *again) == written, "a value comes back from its text");
}

void warn(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty() && lines.size() < 16) {
    lines.push_back(text.substr(0, text.find('\n')));
    text.remove_prefix(std::min(text.size(), lines.back().size() + 1));
  }
  check(warnings_of(lines).size() <= lines.size(), "a variable is warned of once");
}

}  // namespace
}  // namespace fccl::core::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fccl::core;
  fuzz::Input input(data, size);
  const size_t row = input.byte() % every_setting().size();
  const std::string_view text = input.rest();
  fuzz::parse(every_setting()[row], text);
  fuzz::warn(text);
  return 0;
}
