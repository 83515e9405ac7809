// fccl-info: shows what FCCL finds on this machine and what is set.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "base/nearest.h"
#include "fccl/fccl.h"
#include "fccl_info/command.h"
#include "fccl_info/explain.h"
#include "fccl_info/gpus_command.h"
#include "fccl_info/report.h"
#include "fccl_info/settings_command.h"
#include "fccl_info/top.h"
#include "fccl_info/topology_commands.h"
#include "fccl_info/usage.h"
#include "fccl_info/wrong_words.h"

namespace fccl::core {
namespace {

constexpr Command kCommands[] = {
    {"topology", 0, 1, true, describe_topology},
    {"rails", 1, 1, false, list_rails},
    {"explain", 2, 10, true, explain},
    {"gpus", 0, 1, true, list_gpus},
    {"settings", 0, 0, true, list_settings},
    {"top", 0, 4, false, top},
    {"report", 0, 0, false, report},
};
constexpr std::string_view kJson = "--json";

std::vector<std::string_view> names() {
  std::vector<std::string_view> all;
  for (const Command& command : kCommands) all.push_back(command.name);
  return all;
}

tl::unexpected<Error> no_such_command(std::string_view word) {
  std::vector<std::string_view> known = names();
  known.insert(known.end(), {"--help", "--version"});
  return wrong(
      fmt::format("there is no command '{}'; did you mean {}? fccl-info --help tells of all", word, nearest(word, known)));
}

Result<std::string> answer(const Command& command, Words words) {
  std::vector<std::string> rest(words.begin() + 1, words.end());
  const bool wants_json = std::erase(rest, kJson) > 0;
  if (wants_json && !command.has_json) return wrong(fmt::format("{} has no {}", command.name, kJson));
  if (rest.size() < command.fewest_words || rest.size() > command.most_words)
    return wrong(fmt::format("'{}' has too {} words; fccl-info --help has the form", fmt::join(words, " "),
                             rest.size() < command.fewest_words ? "few" : "many"));
  return command.run(rest, wants_json ? Form::json : Form::text);
}

Result<std::string> answer(Words words) {
  if (words.empty()) return wrong(fmt::format("name a command: {}; fccl-info --help tells of them", fmt::join(names(), ", ")));
  if (words[0] == "--help" || words[0] == "-h") return kUsage;
  if (words[0] == "--version") return fmt::format("fccl-info {}.{}.{}\n", FCCL_MAJOR, FCCL_MINOR, FCCL_PATCH);
  const auto* command = std::ranges::find(kCommands, words[0], &Command::name);
  return command == std::end(kCommands) ? no_such_command(words[0]) : answer(*command, words);
}

constexpr int kWrongWords = 2;

int run(Words words) {
  const Result<std::string> text = answer(words);
  if (!text) {
    std::cerr << "fccl-info: " << text.error().message << '\n';
    return text.error().code == fcclInvalidArgument ? kWrongWords : 1;
  }
  std::cout << *text << std::flush;
  return std::cout ? 0 : 1;
}

}  // namespace
}  // namespace fccl::core

int main(int count, char** words) {
  const std::vector<std::string> arguments(words + 1, words + count);
  return fccl::core::run(arguments);
}
