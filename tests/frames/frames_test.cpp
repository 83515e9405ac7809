// The way of a call to its bytes, as the page of the architecture lists it: no function on it that only forwards.
#include <algorithm>
#include <fstream>
#include <iostream>
#include <regex>
#include <string>
#include <vector>

#include "frames/stacks.h"
#include "processes/ranks.h"

namespace fccl::core::testing {
namespace {

using Frames = std::vector<Frame>;

// The numbered lines of the page from the one that names `call` on: function and file.
Frames listed(const std::string& call) {
  std::ifstream page(FCCL_SOURCE_DIR "/docs/architecture.md");
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

// Expects that no stack that ends with these functions is longer than `most`, and that the page's stack is among them.
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
      << "none of them is the one of " << on_page.size() << " frames that docs/architecture.md lists";
}

TEST(Frames, of_an_all_gather_on_one_host_are_those_of_the_page) {
  const Setting ring("FCCL_CROSS_MEMORY_ATTACH", "off");
  run_ranks({.as = RanksAs::processes, .ranks = 2}, [](const Seat& seat) {
    const Comm comm(seat);
    const std::vector<float> mine(16384, static_cast<float>(seat.rank));
    std::vector<float> all(2 * mine.size(), -1);
    Recording recording;
    ASSERT_TRUE(succeeded(fcclAllGather(mine.data(), all.data(), mine.size(), fcclFloat32, comm, nullptr)));
    if (seat.rank == 0) expect_listed(recording.below("fcclAllGather"), {"copy_bytes"}, 7);
    EXPECT_EQ(all.back(), 1);
  });
}

TEST(Frames, of_a_send_of_a_group_on_one_host_are_those_of_the_page) {
  run_ranks({.as = RanksAs::processes, .ranks = 2}, [](const Seat& seat) {
    const Comm comm(seat);
    for (const size_t count : {4, 256}) {  // beside the notice, and in a slot
      std::vector<float> values(count, static_cast<float>(seat.rank + 1));
      Recording recording;
      ASSERT_TRUE(succeeded(fcclGroupStart()));
      ASSERT_TRUE(succeeded(seat.rank == 0 ? fcclSend(values.data(), count, fcclFloat32, 1, comm, nullptr)
                                           : fcclRecv(values.data(), count, fcclFloat32, 0, comm, nullptr)));
      ASSERT_TRUE(succeeded(fcclGroupEnd()));
      if (seat.rank == 0) expect_listed(recording.below("fcclGroupEnd"), {"HostPair::post_eager", "copy_bytes"}, 8);
      EXPECT_EQ(values.back(), 1);
    }
  });
}

TEST(Frames, of_a_reduce_scatter_between_hosts_into_a_stage_are_those_of_the_page) {
  run_ranks({.as = RanksAs::processes, .ranks = 2, .host_of = {0, 1}}, [](const Seat& seat) {
    const Comm comm(seat);
    const std::vector<float> mine(131072, static_cast<float>(seat.rank + 1));
    std::vector<float> sum(mine.size() / 2, -1);
    Recording recording;
    ASSERT_TRUE(succeeded(fcclReduceScatter(mine.data(), sum.data(), sum.size(), fcclFloat32, fcclSum, comm, nullptr)));
    if (seat.rank == 0) expect_listed(recording.below("fcclReduceScatter"), {"PlanExecutor::fill_stage", "copy_bytes"}, 12);
    EXPECT_EQ(sum.back(), 3);
  });
}

}  // namespace
}  // namespace fccl::core::testing
