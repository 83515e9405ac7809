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

// The checkpoint that --resume asks for: the latest of a run, or the one it names; nothing without --resume. Throws a
// SettingsError if it does not exist or is of another model.
std::optional<Checkpoint> find_checkpoint(const Settings& settings);

// All ranks call these; the folder must be one that all of them see.
void save(const std::filesystem::path& run, int64_t step, const Settings& settings, Sharding& sharding,
          const Optimizer& optimizer);
void load(const Checkpoint& checkpoint, Sharding& sharding, const Optimizer& optimizer);

}  // namespace trainer
