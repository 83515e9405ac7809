// Reads a split and colors the processes by it.
#include "launch/split.h"

#include <cctype>
#include <cstdlib>
#include <string>
#include <string_view>

namespace fccl::perf {
namespace {

struct Split {
  char kind;  // one of & | % /
  unsigned long value;
};

// Reads a number that is all of `text` after leading spaces.
std::optional<unsigned long> read_number(std::string text, int base) {
  text.erase(0, text.find_first_not_of(' '));
  if (base == 0 && (text.starts_with("0b") || text.starts_with("0B"))) {
    text.erase(0, 2);
    base = 2;
  }
  char* end = nullptr;
  const unsigned long value = std::strtoul(text.c_str(), &end, base);
  if (text.empty() || !std::isxdigit(static_cast<unsigned char>(text[0])) || *end) return std::nullopt;
  return value;
}

std::optional<Split> read_split(std::string_view text) {
  constexpr std::pair<std::string_view, char> kWords[] = {{"AND", '&'}, {"OR", '|'}, {"MOD", '%'}, {"DIV", '/'},
                                                          {"&", '&'},   {"|", '|'},  {"%", '%'},   {"/", '/'}};
  for (const auto& [word, kind] : kWords) {
    if (text.size() < word.size()) continue;
    bool same = true;
    for (std::size_t i = 0; i < word.size(); ++i) same &= std::toupper(static_cast<unsigned char>(text[i])) == word[i];
    if (!same) continue;
    const auto value = read_number(std::string(text.substr(word.size())), 0);
    if (!value || (*value == 0 && (kind == '%' || kind == '/'))) return std::nullopt;
    return Split{kind, *value};
  }
  return std::nullopt;
}

int color_of(const Split& split, int process) {
  const auto number = static_cast<unsigned long>(process);
  switch (split.kind) {
    case '&':
      return static_cast<int>(number & split.value);
    case '|':
      return static_cast<int>(number | split.value);
    case '%':
      return static_cast<int>(number % split.value);
    default:
      return static_cast<int>(number / split.value);
  }
}

}  // namespace

Result<Group> group_of(const Environment& environment, int process, int processes) {
  std::optional<Split> split = Split{'&', 0};
  if (environment.split_mask) {
    const auto mask = read_number(*environment.split_mask, 16);
    split = mask ? std::optional(Split{'&', *mask}) : std::nullopt;
  } else if (environment.split) {
    split = read_split(*environment.split);
  }
  if (!split)
    return Error{fcclInvalidArgument,
                 "FCCL_TESTS_SPLIT must be AND, OR, MOD or DIV and a number, for example 'MOD 2', and "
                 "FCCL_TESTS_SPLIT_MASK a hexadecimal number"};
  Group group{.color = color_of(*split, process), .leader = process, .index = 0, .processes = 0};
  for (int other = processes - 1; other >= 0; --other) {
    if (color_of(*split, other) != group.color) continue;
    group.leader = other;
    ++group.processes;
    if (other < process) ++group.index;
  }
  return group;
}

}  // namespace fccl::perf
