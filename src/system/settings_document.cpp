// Writes docs/environment.md from the table of settings.
#include "system/settings_document.h"

#include <fmt/format.h>

#include "system/clock.h"
#include "system/settings.h"

namespace fccl {
namespace {

constexpr std::string_view kHead = R"(# Settings

The environment variables that FCCL reads, when a unique id is made and when a communicator is; split takes those of its parent. An
empty variable is an unset one. A value that is not allowed is an error of the call, which names the variable; a variable that
begins with `FCCL_` and is no setting is warned of once, with the nearest one. *Agreed* ones must be equal on all ranks: if not,
creating the communicator fails on every rank and shows both values.

| variable | type | default | allowed | scope | meaning |
|---|---|---|---|---|---|
)";

constexpr std::string_view kFoot = R"(
The package for torch reads two more when torch is imported, `FCCL_TORCH_DEFAULT` and `FCCL_TORCH_REPLACES`: [torch.md](torch.md#unchanged-scripts).

This page is generated: `build/tests/unit/print_settings > docs/environment.md`.
)";

struct Range {
  std::string type, allowed;
};

Range range_of(const Seconds& kind) {
  return {"seconds", fmt::format("{} to {:.0f}", in_seconds(kind.least), in_seconds(kind.most))};
}
Range range_of(const Bytes& kind) { return {"bytes", fmt::format("multiples of {} to {}", kind.multiple, kind.most)}; }
Range range_of(const Number& kind) { return {"number", fmt::format("{} to {}", kind.least, kind.most)}; }
Range range_of(const Text& kind) { return {"text", kind.allowed}; }
Range range_of(const Choice& kind) { return {"choice", fmt::format("{}", fmt::join(kind.choices, ", "))}; }

}  // namespace

std::string settings_document() {
  std::string page(kHead);
  for (const Setting& setting : every_setting()) {
    const Range range = std::visit([](const auto& kind) { return range_of(kind); }, setting.kind);
    const std::string fallback = text_of(setting, Settings{});
    page +=
        fmt::format("| `{}` | {} | {} | {} | {} | {} |\n", setting.variable, range.type, fallback.empty() ? "unset" : fallback,
                    range.allowed, setting.scope == Setting::Scope::agreed ? "agreed" : "local", setting.meaning);
  }
  return page += kFoot;
}

}  // namespace fccl
