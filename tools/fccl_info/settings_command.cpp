// Compares each setting with its default.
#include "fccl_info/settings_command.h"

#include <fmt/format.h>

#include "fccl_info/json_text.h"
#include "settings/settings.h"

namespace fccl::core {

Result<std::string> list_settings(Words, Form form) {
  FCCL_TRY_ASSIGN(const Settings settings, read_settings());
  const Settings defaults;
  std::string text;
  Json json = Json::object();
  for (const Setting& setting : every_setting()) {
    const std::string value = text_of(setting, settings), usual = text_of(setting, defaults);
    text += fmt::format("{} {}={}\n", value == usual ? ' ' : '*', setting.variable, value);
    json[setting.variable] = {{"value", value}, {"default", usual}};
  }
  return form == Form::json ? json_text(json) : text;
}

}  // namespace fccl::core
