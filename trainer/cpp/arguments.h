// The command line as settings, the same on every rank; the names are those of trainer/fsdp.
#pragma once

#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

namespace trainer {

// A setting that cannot work; its text says which and what to try.
struct SettingsError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Everything a run depends on.
struct Settings {
  std::string model = "tiny", dtype = "float32", device = "cpu", optimizer = "adamw", overlap = "yes";
  int64_t layers = 0, hidden = 0, intermediate = 0, heads = 0, vocabulary = 0;
  std::vector<std::filesystem::path> data;
  int64_t seq_len = 0, global_batch = 0, steps = 0, warmup = -1, decay_steps = 0;
  double lr = 0, clip = 1;
  uint64_t seed = 0;
  int64_t save_every = -1;  // -1: at the end; 0: never
  std::string resume, name;
  std::filesystem::path runs = "runs";
};

// Throws a SettingsError for what cannot work with so many ranks.
Settings parse(const std::vector<std::string>& words, int ranks);
std::string usage();

}  // namespace trainer
