// Saves a run so that any number of ranks can go on with it: a file per layer and kind of value, of which each rank writes its
// part.
#pragma once

#include <filesystem>
#include <optional>

#include "optimizer.h"

namespace trainer {

// A save that is complete, of a model of this shape.
struct Checkpoint {
  std::filesystem::path folder;
  int64_t step;
};

// What --resume means, none if it is not given: the latest of a run, or the one it names. A SettingsError where there is none,
// or one of another model.
std::optional<Checkpoint> find_checkpoint(const Settings& settings);

// All ranks call these; the folder must be one that all of them see.
void save(const std::filesystem::path& run, int64_t step, const Settings& settings, Sharding& sharding,
          const Optimizer& optimizer);
void load(const Checkpoint& checkpoint, Sharding& sharding, const Optimizer& optimizer);

}  // namespace trainer
