// Rows of numbers in files, without their padding, so that shards of any size can be read from them.
#include "checkpoint.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <sstream>

namespace trainer {
namespace {

namespace fs = std::filesystem;

// Written last, so that a folder without it is a save that did not finish.
constexpr char kComplete[] = "complete";

std::string shape_of(const Settings& settings) {
  std::ostringstream text;
  text << settings.dtype << " " << settings.optimizer;
  for (const int64_t number : {settings.layers, settings.hidden, settings.intermediate, settings.heads, settings.vocabulary})
    text << " " << number;
  return text.str();
}

// True if the checkpoint's file holds its step: a full disk leaves an empty file.
bool is_complete(const fs::path& folder) {
  int64_t step = -1;
  return fs::is_regular_file(folder / kComplete) && std::ifstream(folder / kComplete) >> step;
}

Checkpoint of_this_shape(const fs::path& folder, const Settings& settings) {
  std::ifstream file(folder / kComplete);
  Checkpoint found{folder, 0};
  std::string shape;
  file >> found.step >> std::ws;
  std::getline(file, shape);
  if (found.step < 0)
    throw SettingsError("--resume " + folder.string() + " says that it has made " + std::to_string(found.step) +
                        " steps: its file '" + kComplete + "' is damaged, choose another checkpoint");
  if (shape != shape_of(settings))
    throw SettingsError("--resume " + folder.string() + " holds another model (" + shape + ") than this one (" +
                        shape_of(settings) + "): give its --model, --layers, --hidden, --dtype and --optimizer");
  if (found.step >= settings.steps)
    throw SettingsError("--resume " + folder.string() + " has made " + std::to_string(found.step) +
                        " steps already: choose more --steps");
  return found;
}

// At once or not at all.
void mark_complete(const fs::path& folder, int64_t step, const Settings& settings) {
  const fs::path beside = folder / "completing";
  std::ofstream file(beside);
  file << step << " " << shape_of(settings) << std::endl;
  if (!file) throw std::runtime_error("saving " + beside.string() + " failed: is the disk full?");
  fs::rename(beside, folder / kComplete);
}

// Calls use(name of the file, tensor, bytes of it that count, where they begin in the file) for all that this rank keeps.
template <class Use>
void for_each_shard(Sharding& sharding, const Optimizer& optimizer, Use use) {
  for (int index = 0; index < sharding.layers(); ++index) {
    const Layer& layer = sharding.layer(index);
    const int64_t share = layer.shard.numel();
    const int64_t begin = std::min(layer.size, sharding.communicator().rank() * share);
    const int64_t bytes = std::min(share, layer.size - begin) * layer.shard.element_size();
    const std::string name = "layer-" + std::to_string(index);
    use(name + ".parameters", layer.shard, bytes, begin * layer.shard.element_size());
    const auto& state = optimizer.state()[static_cast<size_t>(index)];
    for (size_t i = 0; i < state.size(); ++i)
      use(name + ".optimizer-" + std::to_string(i), state[i], bytes, begin * layer.shard.element_size());
  }
}

}  // namespace

std::optional<Checkpoint> find_checkpoint(const Settings& settings) {
  if (settings.resume.empty()) return std::nullopt;
  for (const fs::path& place : {fs::path(settings.resume), settings.runs / settings.resume}) {
    if (is_complete(place)) return of_this_shape(place, settings);
    std::vector<fs::path> complete;
    if (fs::is_directory(place / "checkpoints"))
      for (const auto& entry : fs::directory_iterator(place / "checkpoints"))
        if (is_complete(entry.path())) complete.push_back(entry.path());
    if (!complete.empty()) return of_this_shape(*std::max_element(complete.begin(), complete.end()), settings);
  }
  throw SettingsError("--resume " + settings.resume + ": no finished checkpoint there, nor under " +
                      (settings.runs / settings.resume).string());
}

void save(const fs::path& run, int64_t step, const Settings& settings, Sharding& sharding, const Optimizer& optimizer) {
  char name[32];
  std::snprintf(name, sizeof name, "step-%06ld", step);
  const fs::path folder = run / "checkpoints" / name;
  const bool first = sharding.communicator().rank() == 0;
  if (first) fs::create_directories(folder);
  if (first) for_each_shard(sharding, optimizer, [&](const std::string& file, auto&&...) { std::ofstream(folder / file); });
  must(sharding.communicator().barrier());
  for_each_shard(sharding, optimizer, [&](const std::string& name, const torch::Tensor& shard, int64_t bytes, int64_t begin) {
    std::fstream file(folder / name, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(begin).write(static_cast<const char*>(shard.const_data_ptr()), bytes).flush();
    if (!file) throw std::runtime_error("saving " + (folder / name).string() + " failed: is the disk full?");
  });
  must(sharding.communicator().barrier());
  if (first) mark_complete(folder, step, settings);
}

void load(const Checkpoint& checkpoint, Sharding& sharding, const Optimizer& optimizer) {
  for_each_shard(sharding, optimizer, [&](const std::string& name, const torch::Tensor& shard, int64_t bytes, int64_t begin) {
    std::ifstream file(checkpoint.folder / name, std::ios::binary);
    file.seekg(begin).read(static_cast<char*>(shard.mutable_data_ptr()), bytes);
    if (!file) throw std::runtime_error("reading " + (checkpoint.folder / name).string() + " failed: it is too short, or gone");
  });
}

}  // namespace trainer
