// Keeps stacks, and finds the names of their frames by addr2line.
#include "frames/stacks.h"

#include <dlfcn.h>
#include <execinfo.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <set>
#include <sstream>

namespace fccl::core::testing {
namespace {

constexpr int kDeepest = 64;

using Stack = std::vector<void*>;

thread_local bool is_recording = false;
std::set<Stack> kept;

// Without the parameters and what the compiler calls copies of a function; a template without its arguments and its result.
std::string short_name(std::string name) {
  for (const std::string& prefix : {std::string("(anonymous namespace)::"), std::string("fccl::core::"), std::string("fccl::")})
    for (size_t at = name.find(prefix); at != std::string::npos; at = name.find(prefix)) name.erase(at, prefix.size());
  std::string plain;
  int depth = 0;
  for (const char letter : name.substr(0, name.find_first_of("(["))) {
    if (letter == '<') ++depth;
    if (depth == 0) plain += letter;
    if (letter == '>') --depth;
  }
  return plain.substr(plain.rfind(' ') + 1);
}

// All functions at an address, the innermost first: more than one where the compiler has put them into each other.
std::vector<Frame> frames_at(void* returns_to) {
  Dl_info object{};
  if (dladdr(returns_to, &object) == 0) return {};
  const auto offset = reinterpret_cast<uintptr_t>(returns_to) - reinterpret_cast<uintptr_t>(object.dli_fbase) - 1;
  std::ostringstream command;
  command << "addr2line -Cfi -e '" << object.dli_fname << "' 0x" << std::hex << offset;
  std::FILE* pipe = ::popen(command.str().c_str(), "r");
  if (pipe == nullptr) return {};
  std::vector<std::string> lines;
  for (std::array<char, 4096> line; std::fgets(line.data(), line.size(), pipe) != nullptr;)
    lines.emplace_back(line.data(), std::strcspn(line.data(), "\n"));
  ::pclose(pipe);
  std::vector<Frame> frames;
  for (size_t i = 0; i + 1 < lines.size(); i += 2) frames.push_back({short_name(lines[i]), lines[i + 1]});
  return frames;
}

}  // namespace

void keep_stack(int callers) {
  if (!is_recording) return;
  is_recording = false;
  Stack stack(kDeepest);
  stack.resize(static_cast<size_t>(::backtrace(stack.data(), kDeepest)));
  stack.erase(stack.begin(), stack.begin() + 1 + callers);
  kept.insert(std::move(stack));
  is_recording = true;
}

Recording::Recording() {
  // The first one loads a library.
  std::array<void*, 1> first{};
  ::backtrace(first.data(), 1);
  kept.clear();
  is_recording = true;
}

Recording::~Recording() { is_recording = false; }

std::vector<std::vector<Frame>> Recording::below(const std::string& outermost) {
  is_recording = false;
  std::map<void*, std::vector<Frame>> known;
  std::vector<std::vector<Frame>> found;
  for (const Stack& stack : kept) {
    std::vector<Frame> frames;
    bool is_whole = false;
    for (void* returns_to : stack) {
      if (!known.contains(returns_to)) known[returns_to] = frames_at(returns_to);
      // Between a function object and its call stand functions of the C++ library.
      for (const Frame& frame : known[returns_to])
        if (frame.file.find("/include/c++/") == std::string::npos) frames.push_back(frame);
      is_whole = !frames.empty() && frames.back().name == outermost;
      if (is_whole) break;
    }
    std::reverse(frames.begin(), frames.end());
    if (is_whole) found.push_back(std::move(frames));
  }
  return found;
}

}  // namespace fccl::core::testing
