// The campaign of faults: seeds drawn one after the other, each a run of real ranks that meets one fault.
#include <sys/mman.h>

#include <charconv>
#include <cstdio>
#include <cstring>
#include <map>
#include <new>
#include <string>
#include <string_view>

#include "faults/judge.h"

namespace {

using namespace fccl::core::faults;
using fccl::core::testing::ms_since;
using fccl::core::testing::now_ns;

constexpr const char* kUsage =
    "usage: faults --seeds N [--first S]   N runs, from seed S on (1 if not said otherwise)\n"
    "       faults --seed S                one run\n"
    "       faults --draw S                what the run of a seed would be\n";

bool run_seed(const char* program, uint64_t seed) {
  const Draw draw = draw_of(seed);
  void* memory = mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  auto* board = new (memory) Board;
  const int64_t begin = now_ns();
  const Observation seen = supervise(draw, *board);
  const std::vector<std::string> faults = judge(draw, *board, seen);
  std::printf("seed %llu: %s (%.1f s): %s\n", static_cast<unsigned long long>(seed), faults.empty() ? "ok" : "FAILED",
              ms_since(begin) / 1000, describe(draw).c_str());
  for (const std::string& fault : faults) std::printf("  %s\n", fault.c_str());
  if (!faults.empty()) std::printf("  again: %s --seed %llu\n", program, static_cast<unsigned long long>(seed));
  std::fflush(stdout);
  munmap(memory, sizeof(Board));
  return faults.empty();
}

int run_seeds(const char* program, uint64_t first, uint64_t seeds) {
  if (!hide_files_of_others())
    std::printf("this system gives no /tmp of its own: what others leave there meanwhile will be taken for the runs'\n");
  uint64_t failed = 0;
  for (uint64_t seed = first; seed < first + seeds; ++seed)
    if (!run_seed(program, seed)) ++failed;
  std::printf("%llu of %llu seeds failed\n", static_cast<unsigned long long>(failed), static_cast<unsigned long long>(seeds));
  return failed == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  std::map<std::string_view, uint64_t> given;
  for (int i = 1; i < argc; i += 2) {
    uint64_t value = 0;
    const std::string_view text = i + 1 < argc ? argv[i + 1] : "";
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || text.empty()) return std::fputs(kUsage, stderr), 2;
    given[argv[i]] = value;
  }
  if (given.size() == 1 && given.contains("--draw")) return std::puts(describe(draw_of(given["--draw"])).c_str()), 0;
  if (given.size() == 1 && given.contains("--seed")) return run_seeds(argv[0], given["--seed"], 1);
  if (given.contains("--seeds") && given.size() == 1 + given.count("--first"))
    return run_seeds(argv[0], given.contains("--first") ? given["--first"] : 1, given["--seeds"]);
  return std::fputs(kUsage, stderr), 2;
}
