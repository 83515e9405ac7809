// Small files of the kernel, in /proc and /sys, as texts.
#pragma once

#include <string>
#include <string_view>

namespace fccl::core {

// Returns the content of a file; "" if it cannot be read.
std::string text_in(const std::string& path);
// Returns the first line of a file that begins with `begin`, without its end; "" if no line does.
std::string line_with(const std::string& path, std::string_view begin);
// Returns the text in characters that cannot control a terminal.
std::string printable(std::string text);

}  // namespace fccl::core
