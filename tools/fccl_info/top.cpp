// Looks again and again, and writes each look over the one before.
#include "fccl_info/top.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <chrono>
#include <iostream>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include "fccl_info/look.h"
#include "fccl_info/wrong_words.h"

namespace fccl::core {
namespace {

using namespace std::string_view_literals;

constexpr double kLeastSeconds = 0.1, kMostSeconds = 3600;
constexpr std::chrono::duration<double> kUsual{2};
// Moves a terminal's cursor to its first place, and clears it.
constexpr const char* kClear = "\x1b[H\x1b[2J";

struct Options {
  std::optional<int> process;
  std::optional<std::chrono::duration<double>> interval;
  bool once = false;
};

Result<void> set_interval(Options& options, Words words, size_t at) {
  if (at == words.size()) return wrong("--interval is followed by nothing; give seconds, as in --interval 2");
  const std::optional<double> seconds = number_in(words[at]);
  const bool is_allowed = seconds && *seconds >= kLeastSeconds && *seconds <= kMostSeconds;
  if (!is_allowed)
    return wrong(fmt::format("'{}' is no interval; give {} to {} seconds", words[at], kLeastSeconds, kMostSeconds));
  options.interval = std::chrono::duration<double>(*seconds);
  return {};
}

Result<void> set_process(Options& options, const std::string& word) {
  int process = 0;
  const auto [end, fault] = std::from_chars(word.data(), word.data() + word.size(), process);
  if (fault != std::errc() || end != word.data() + word.size() || process < 1)
    return wrong(fmt::format("'{}' is not an id of a process", word));
  if (options.process) return wrong(fmt::format("top takes one process, but got {} and {}", *options.process, process));
  options.process = process;
  return {};
}

Result<Options> options_in(Words words) {
  Options options;
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--once")
      options.once = true;
    else if (words[i] == "--interval")
      FCCL_TRY(set_interval(options, words, ++i));
    else if (words[i].starts_with('-'))
      return wrong_option(words[i], "top", std::array{"--interval"sv, "--once"sv});
    else
      FCCL_TRY(set_process(options, words[i]));
  }
  return options;
}

Result<std::string> look_again_and_again(const Options& options) {
  const auto interval = options.interval.value_or(kUsual);
  std::optional<Look> before;
  for (;;) {
    FCCL_TRY_ASSIGN(Look now, look_at(options.process));
    std::cout << kClear << fmt::format("fccl-info top, every {} s; Ctrl-C ends it\n\n", interval.count())
              << text_of(now, before ? &*before : nullptr) << std::flush;
    if (!std::cout) return std::string();
    before = std::move(now);
    std::this_thread::sleep_for(interval);
  }
}

}  // namespace

Result<std::string> top(Words words, Form) {
  FCCL_TRY_ASSIGN(const Options options, options_in(words));
  if (!options.once && ::isatty(STDOUT_FILENO) == 1) return look_again_and_again(options);
  FCCL_TRY_ASSIGN(const Look first, look_at(options.process));
  if (!options.interval) return text_of(first, nullptr);
  std::this_thread::sleep_for(*options.interval);
  FCCL_TRY_ASSIGN(const Look second, look_at(options.process));
  return text_of(second, &first);
}

}  // namespace fccl::core
