// A table of losses, and their curve as a drawing that a browser shows.
#include "report.h"

#include <algorithm>
#include <cstdio>

namespace trainer {
namespace {

constexpr double kWidth = 640, kHeight = 360, kMargin = 48;

}  // namespace

Report::Report(const std::filesystem::path& folder, const Settings& settings)
    : folder_(folder),
      steps_(settings.steps),
      tokens_per_step_(settings.global_batch * settings.seq_len),
      period_(std::max<int64_t>(1, settings.steps / 20)) {
  std::filesystem::create_directories(folder);
  csv_.open(folder / "losses.csv");
  if (!csv_)
    throw std::runtime_error("the file " + (folder / "losses.csv").string() + " cannot be written: choose another --runs");
  csv_.precision(17);
  csv_ << "step,loss,learning_rate,gradient_norm,seconds\n";
}

void Report::step(const Metrics& metrics) {
  losses_.emplace_back(metrics.step, metrics.loss);
  csv_ << metrics.step << ',' << metrics.loss << ',' << metrics.learning_rate << ',' << metrics.gradient_norm << ','
       << metrics.seconds << std::endl;
  if (metrics.step % period_ != 0 && metrics.step != steps_ && losses_.size() > 1) return;
  const double speed = static_cast<double>(tokens_per_step_) / metrics.seconds;
  std::printf("step %ld of %ld: loss %.4f, %.0f tokens/s\n", metrics.step, steps_, metrics.loss, speed);
  std::fflush(stdout);
}

void Report::draw() const {
  if (losses_.empty()) return;
  const auto by_loss = [](const auto& a, const auto& b) { return a.second < b.second; };
  const auto [lowest, highest] = std::minmax_element(losses_.begin(), losses_.end(), by_loss);
  const double least = lowest->second, span = std::max(1e-9, highest->second - least);
  const auto first = static_cast<double>(losses_.front().first);
  const double steps = std::max(1.0, static_cast<double>(losses_.back().first) - first);
  std::ofstream svg(folder_ / "loss.svg");
  svg << R"(<svg xmlns="http://www.w3.org/2000/svg" width=")" << kWidth << R"(" height=")" << kHeight << R"(" font-size="12">)";
  svg << R"(<rect width="100%" height="100%" fill="white"/>)";
  const auto write = [&](double x, double y) -> std::ostream& { return svg << "\n<text x='" << x << "' y='" << y << "'>"; };
  write(4, kMargin) << highest->second << "</text>";
  write(4, kHeight - kMargin) << least << "</text>";
  write(kWidth / 2, kHeight - 12) << "nats per token, steps " << first << " to " << first + steps << "</text>\n";
  svg << R"(<polyline fill="none" stroke="#1f77b4" points=")";
  for (const auto& [step, loss] : losses_)
    svg << kMargin + (static_cast<double>(step) - first) / steps * (kWidth - 2 * kMargin) << ','
        << kHeight - kMargin - (loss - least) / span * (kHeight - 2 * kMargin) << ' ';
  svg << R"("/></svg>)" << "\n";
}

}  // namespace trainer
