// Runs a fuzzer without libFuzzer: on its seeds and on mutations of them, the same ones each time; or writes the seeds to
// files.
//
//   replay_NAME MUTATIONS | replay_NAME --write FOLDER
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

#include "fuzz/fuzz.h"

namespace fccl::core::fuzz {
namespace {

using Generator = std::mt19937_64;

size_t below(Generator& generator, size_t limit) { return generator() % limit; }

void mutate_once(Generator& generator, std::string& bytes, const std::string& other) {
  const size_t at = below(generator, bytes.size() + 1);
  const size_t some = 1 + below(generator, 8);
  switch (below(generator, 6)) {
    case 0:
      if (at < bytes.size()) bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(generator, 8)));
      break;
    case 1:
      if (at < bytes.size()) bytes[at] = static_cast<char>(generator());
      break;
    case 2:
      bytes.insert(at, some, static_cast<char>(generator()));
      break;
    case 3:
      bytes.erase(at, some);
      break;
    case 4:
      bytes.resize(at);
      break;
    default:
      bytes = bytes.substr(0, at) + other.substr(below(generator, other.size() + 1));
  }
}

void run(const std::string& bytes) { LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()); }

int replay(size_t mutations) {
  const std::vector<std::string> all = seeds();
  for (const std::string& seed : all) run(seed);
  run({});
  Generator generator(1);
  for (size_t i = 0; i < mutations; ++i) {
    std::string bytes = all[below(generator, all.size())];
    const std::string& other = all[below(generator, all.size())];
    for (size_t changes = 1 + below(generator, 6); changes > 0; --changes) mutate_once(generator, bytes, other);
    run(bytes);
  }
  std::printf("%zu seeds and %zu mutations\n", all.size(), mutations);
  return 0;
}

int write(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  size_t number = 0;
  for (const std::string& seed : seeds()) std::ofstream(folder / ("seed" + std::to_string(number++)), std::ios::binary) << seed;
  return 0;
}

}  // namespace
}  // namespace fccl::core::fuzz

int main(int count, char** arguments) {
  const std::string_view first = count > 1 ? arguments[1] : "";
  if (first == "--write" && count == 3) return fccl::core::fuzz::write(arguments[2]);
  if (count == 2) return fccl::core::fuzz::replay(std::strtoull(arguments[1], nullptr, 10));
  std::fprintf(stderr, "usage: %s MUTATIONS | %s --write FOLDER\n", arguments[0], arguments[0]);
  return 2;
}
