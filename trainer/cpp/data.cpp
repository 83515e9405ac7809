// Files in the order of their names, and sequences at random places of their bytes.
#include "data.h"

#include <algorithm>
#include <fstream>
#include <iterator>

#include "random.h"

namespace trainer {
namespace {

namespace fs = std::filesystem;

constexpr int16_t kEndOfText = 256;
constexpr int64_t kValidationPart = 20;

std::string bytes_of(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) throw SettingsError("--data " + file.string() + ": this file cannot be read");
  return {std::istreambuf_iterator<char>(stream), {}};
}

bool is_hidden(const fs::path& path) { return path.filename().string().starts_with('.') || path.filename() == "__pycache__"; }

bool is_text(const fs::path& file) { return bytes_of(file).substr(0, 8192).find('\0') == std::string::npos; }

std::vector<fs::path> text_files(const fs::path& path) {
  if (fs::is_regular_file(path)) return {path};
  if (!fs::is_directory(path)) throw SettingsError("--data " + path.string() + ": no such file or folder");
  std::vector<fs::path> files;
  for (auto entry = fs::recursive_directory_iterator(path); entry != fs::recursive_directory_iterator(); ++entry) {
    if (is_hidden(entry->path()))
      entry.disable_recursion_pending();
    else if (entry->is_regular_file() && is_text(entry->path()))
      files.push_back(entry->path());
  }
  if (files.empty()) throw SettingsError("--data " + path.string() + ": no text file in this folder");
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

torch::Tensor read_corpus(const Settings& settings) {
  std::vector<int16_t> tokens;
  for (const fs::path& path : settings.data) {
    for (const fs::path& file : text_files(path)) {
      for (const char byte : bytes_of(file)) tokens.push_back(static_cast<unsigned char>(byte));
      tokens.push_back(kEndOfText);
    }
  }
  const auto count = static_cast<int64_t>(tokens.size());
  if (count / kValidationPart <= settings.seq_len + 1)
    throw SettingsError("--data gives " + std::to_string(count) + " tokens, which are too few for --seq-len " +
                        std::to_string(settings.seq_len) + ": give more text, or a smaller --seq-len");
  return torch::tensor(at::ArrayRef<int16_t>(tokens), torch::kInt16).slice(0, 0, count - count / kValidationPart);
}

torch::Tensor training_batch(const torch::Tensor& corpus, const Settings& settings, int64_t step, int rank, int ranks) {
  const int64_t last = corpus.size(0) - settings.seq_len - 1;
  const auto starts = draws(settings.seed, static_cast<uint64_t>(step), static_cast<uint32_t>(last), settings.global_batch);
  const int64_t share = settings.global_batch / ranks;
  std::vector<torch::Tensor> sequences;
  for (const int64_t start : at::ArrayRef<int64_t>(starts).slice(static_cast<size_t>(rank * share), static_cast<size_t>(share)))
    sequences.push_back(corpus.slice(0, start, start + settings.seq_len + 1));
  return torch::stack(sequences).to(torch::kInt64);
}

}  // namespace trainer
