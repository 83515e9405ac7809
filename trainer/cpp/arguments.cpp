// A table of arguments, and the presets that fill in what the command line leaves out.
#include "arguments.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <map>
#include <sstream>
#include <utility>

namespace trainer {
namespace {

// Settings that hold unless the command line says otherwise.
struct Preset {
  int64_t layers, hidden, intermediate, heads, vocabulary, seq_len, global_batch;
  double lr;
  int64_t steps, warmup;
};

const std::map<std::string, Preset> kPresets = {
    {"tiny", {4, 192, 512, 4, 257, 128, 16, 3e-3, 350, 20}},
    {"125m", {12, 768, 1728, 12, 32000, 1024, 32, 6e-4, 5000, 200}},
};

// One argument: what it means, and what takes its value and returns what is wrong with it, if anything.
struct Argument {
  std::string name, meaning;
  std::function<std::string(const std::string& value)> take;
};

template <class Number>
auto number(Number& target, Number least) {
  return [&target, least](const std::string& value) {
    std::ostringstream wanted;
    wanted << "wants a number of at least " << least;
    const char* end = value.data() + value.size();
    const auto [rest, error] = std::from_chars(value.data(), end, target);
    return error == std::errc{} && rest == end && target >= least ? std::string() : wanted.str();
  };
}

auto one_of(std::string& target, std::vector<std::string> choices) {
  return [&target, choices = std::move(choices)](const std::string& value) {
    target = value;
    if (std::find(choices.begin(), choices.end(), value) != choices.end()) return std::string();
    std::string known = "knows";
    for (const std::string& choice : choices) known.append(" ").append(choice);
    return known;
  };
}

template <class Text>
auto text(Text& target) {
  return [&target](const std::string& value) { return target = value, std::string(); };
}

std::vector<Argument> arguments_of(Settings& s) {
  return {
      {"--model", "tiny or 125m (tiny)", one_of(s.model, {"tiny", "125m"})},
      {"--layers", "blocks, in place of the preset's", number(s.layers, int64_t{1})},
      {"--hidden", "width, in place of the preset's", number(s.hidden, int64_t{1})},
      {"--dtype", "float32 or float64 (float32)", one_of(s.dtype, {"float32", "float64"})},
      {"--device", "cpu", one_of(s.device, {"cpu"})},
      {"--data", "text files or folders of them", [&](const auto& path) { return s.data.push_back(path), std::string(); }},
      {"--seq-len", "tokens of one sequence", number(s.seq_len, int64_t{1})},
      {"--global-batch", "sequences per step, all ranks", number(s.global_batch, int64_t{1})},
      {"--optimizer", "adamw or sgd (adamw)", one_of(s.optimizer, {"adamw", "sgd"})},
      {"--steps", "where to stop", number(s.steps, int64_t{1})},
      {"--lr", "highest learning rate", number(s.lr, 0.0)},
      {"--warmup", "steps until the highest learning rate", number(s.warmup, int64_t{0})},
      {"--decay-steps", "where the cosine ends", number(s.decay_steps, int64_t{1})},
      {"--clip", "highest gradient norm (1)", number(s.clip, 0.0)},
      {"--seed", "of weights and batches (0)", number(s.seed, uint64_t{0})},
      {"--overlap", "no: one whole layer at a time, which waits for its calls (yes)", one_of(s.overlap, {"yes", "no"})},
      {"--save-every", "save each N steps and at the end; 0: never (at the end)", number(s.save_every, int64_t{0})},
      {"--resume", "a run's name, its folder, or one of its checkpoints", text(s.resume)},
      {"--name", "the run's folder under --runs (one that is free)", text(s.name)},
      {"--runs", "where runs leave their files (runs)", text(s.runs)},
  };
}

// Hands each value to the argument before it; only --data takes several.
void take_all(const std::vector<std::string>& words, const std::vector<Argument>& arguments) {
  for (size_t i = 0; i < words.size();) {
    const std::string& name = words[i++];
    const auto known = std::find_if(arguments.begin(), arguments.end(), [&](const auto& each) { return each.name == name; });
    if (known == arguments.end()) throw SettingsError(name + ": no such argument; --help lists them");
    if (i == words.size() || words[i].starts_with("--")) throw SettingsError(name + " wants a value");
    for (bool more = true; more;) {
      const std::string& value = words[i++];
      if (const std::string wrong = known->take(value); !wrong.empty())
        throw SettingsError(std::string(name).append(" ").append(wrong).append(", but got '").append(value).append("'"));
      more = name == "--data" && i < words.size() && !words[i].starts_with("--");
    }
  }
}

void refuse_what_cannot_work(const Settings& s, int ranks) {
  const auto refuse_rest = [](const std::string& name, int64_t number, int64_t divisor, const std::string& what) {
    if (number % divisor == 0) return;
    throw SettingsError(name + " " + std::to_string(number) + " does not divide among " + what + ": choose a multiple of " +
                        std::to_string(divisor));
  };
  refuse_rest("--global-batch", s.global_batch, ranks, std::to_string(ranks) + " ranks");
  refuse_rest("--hidden", s.hidden, 2 * s.heads, std::to_string(s.heads) + " heads of an even width");
  if (s.data.empty()) throw SettingsError("there is no text to learn: name files or folders with --data");
}

}  // namespace

Settings parse(const std::vector<std::string>& words, int ranks) {
  Settings s;
  take_all(words, arguments_of(s));
  const Preset& preset = kPresets.at(s.model);
  const auto fill = [](auto& setting, auto value) { setting = setting == 0 ? value : setting; };
  // The feed-forward width keeps its ratio; a short run is the beginning of a long one.
  fill(s.hidden, preset.hidden);
  s.intermediate = preset.intermediate * s.hidden / preset.hidden;
  s.heads = preset.heads;
  s.vocabulary = preset.vocabulary;
  fill(s.layers, preset.layers);
  fill(s.seq_len, preset.seq_len);
  fill(s.global_batch, preset.global_batch);
  fill(s.lr, preset.lr);
  fill(s.steps, preset.steps);
  fill(s.decay_steps, std::max(s.steps, preset.steps));
  if (s.warmup < 0) s.warmup = preset.warmup;
  refuse_what_cannot_work(s, ranks);
  return s;
}

std::string usage() {
  Settings unused;
  std::string lines = "Trains a Llama, sharded over the ranks of an mpirun.\n";
  for (const auto& each : arguments_of(unused))
    lines += "  " + each.name + std::string(16 - each.name.size(), ' ') + each.meaning + "\n";
  return lines;
}

}  // namespace trainer
