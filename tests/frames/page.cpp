// Reads numbered lists of functions and compares stacks with them.
#include "frames/page.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <regex>

namespace fccl::core::testing {
namespace {

using Frames = std::vector<Frame>;

// The numbered lines of the page from the one that names `call` on: function and file.
Frames listed(const std::string& call) {
  std::ifstream page(FCCL_SOURCE_DIR "/docs/explanation/architecture.md");
  const std::regex numbered(R"( ?(\d+)  (\S+) +(\S+).*)");
  Frames frames;
  for (std::string line; std::getline(page, line);) {
    std::smatch found;
    const bool is_frame = std::regex_match(line, found, numbered);
    if (is_frame && (!frames.empty() || found[2] == call))
      frames.push_back({found[2], found[3]});
    else if (!frames.empty() && line.starts_with("```"))
      break;
  }
  return frames;
}

bool are_equal(const Frames& seen, const Frames& on_page) {
  return std::ranges::equal(seen, on_page, [](const Frame& frame, const Frame& line) {
    return frame.name == line.name && frame.file.find("/" + line.file + ":") != std::string::npos;
  });
}

void print(const Frames& frames) {
  for (size_t i = 0; i < frames.size(); ++i) std::cout << i + 1 << "  " << frames[i].name << "  " << frames[i].file << '\n';
  std::cout << std::endl;
}

}  // namespace

void expect_listed(std::vector<Frames> stacks, const std::vector<std::string>& innermost, size_t most) {
  std::erase_if(stacks, [&](const Frames& frames) {
    return frames.size() < innermost.size() ||
           !std::equal(
               innermost.rbegin(), innermost.rend(), frames.rbegin(),
               [](const std::string& name, const Frame& frame) { return name == frame.name; });
  });
  ASSERT_FALSE(stacks.empty());
  for (const Frames& frames : stacks) {
    print(frames);
    EXPECT_LE(frames.size(), most);
  }
  const Frames on_page = listed(stacks.front().front().name);
  EXPECT_TRUE(std::ranges::any_of(stacks, [&](const Frames& frames) { return are_equal(frames, on_page); }))
      << "none of them is the one of " << on_page.size() << " frames that docs/explanation/architecture.md lists";
}

}  // namespace fccl::core::testing
