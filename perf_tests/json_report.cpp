// Writes the keys of nccl-tests' parsers; its "NCCL" means FCCL here.
#include "json_report.h"

#include <cmath>

#include "new_file.h"

namespace fccl::perf {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kFileVersion = 3;
constexpr double kMicroseconds = 1e6;

// A truth value as nccl-tests writes it.
const char* word(bool value) { return value ? "true" : "false"; }

// JSON has no number for infinities and NaN.
Json number(double value) { return std::isfinite(value) ? Json(value) : Json(std::isnan(value) ? "nan" : "inf"); }

Json in_microseconds(const std::vector<double>& seconds) {
  Json list = Json::array();
  for (const double each : seconds) list.push_back(each * kMicroseconds);
  return list;
}

Json config_of(const Beginning& beginning) {
  const Arguments& arguments = beginning.arguments;
  Json config{{"nthreads", arguments.threads},
              {"ngpus", arguments.gpus_per_thread()},
              {"minimum_bytes", arguments.min_bytes},
              {"maximum_bytes", arguments.max_bytes}};
  if (arguments.step_factor > 1) {
    config["step_factor"] = arguments.step_factor;
  } else {
    config["step_bytes"] = arguments.step_bytes;
  }
  config["warmup_iters"] = arguments.warmup;
  config["iterations"] = arguments.iterations;
  config["aggregated_iterations"] = arguments.aggregated;
  config["validation"] = arguments.checks;
  config["graph"] = 0;
  config["blocking_collectives"] = word(arguments.blocking != Blocking::none);
  config["per_iter_timing"] = word(arguments.per_iteration);
  config["per_iter_skip"] = arguments.skipped;
  config["parallel_init"] = word(arguments.parallel_init);
  config["rotate"] = word(arguments.rotates);
  config["fresh"] = word(arguments.fresh);
  if (arguments.skew > 0) config["skew"] = arguments.skew;
  if (arguments.uneven) config["uneven"] = name_of(*arguments.uneven);
  config["library"] = beginning.library.empty() ? "fccl" : beginning.library;
  config["device"] = arguments.uses_gpus() ? "cuda" : "cpu";
  config["buffers"] = arguments.in_arena ? "arena" : "private";
  config["ranks_are"] = kinds_of_ranks(beginning);
  if (arguments.uses_gpus()) {
    config["cuda_path"] = beginning.cuda_path;
    config["ranks_per_gpu"] = ranks_per_gpu(beginning.ranks);
  }
  Json& devices = config["devices"] = Json::array();
  for (const RankInfo& info : beginning.ranks)
    devices.push_back({{"rank", info.rank},
                       {"group", info.group},
                       {"pid", info.process_id},
                       {"hostname", info.host},
                       {"device", info.device.ordinal},
                       {"device_hex", info.device.place()},
                       {"device_info", info.device.name}});
  return config;
}

Json iterations_of(const Iterations& iterations) {
  const Statistics& statistics = iterations.statistics;
  Json json{{"skipped_iterations", iterations.skipped},     {"min_us", statistics.minimum * kMicroseconds},
            {"max_us", statistics.maximum * kMicroseconds}, {"avg_us", statistics.mean * kMicroseconds},
            {"p50_us", statistics.p50 * kMicroseconds},     {"p95_us", statistics.p95 * kMicroseconds},
            {"p99_us", statistics.p99 * kMicroseconds},     {"stdev_us", statistics.deviation * kMicroseconds},
            {"cv_pct", statistics.variation_percent()},     {"times_us", in_microseconds(iterations.times)}};
  if (iterations.process_times.size() > 1) {
    Json& list = json["per_process_max_times_us"] = Json::array();
    for (const auto& times : iterations.process_times) list.push_back(in_microseconds(times));
  }
  return json;
}

Json measurement_of(const Measurement& measurement, bool cpu_time) {
  Json json{{cpu_time ? "cpu_time" : "time", measurement.seconds * kMicroseconds},
            {"alg_bw", number(measurement.algorithm_bandwidth / 1e9)},
            {"bus_bw", number(measurement.bus_bandwidth / 1e9)},
            {"nwrong", measurement.wrong ? Json(static_cast<double>(*measurement.wrong)) : Json()}};
  if (measurement.iterations) {
    json["p50"] = measurement.iterations->statistics.p50 * kMicroseconds;
    json["p99"] = measurement.iterations->statistics.p99 * kMicroseconds;
  }
  if (measurement.ulp) json["ulp"] = number(*measurement.ulp);
  if (measurement.skew) {
    json["apart"] = measurement.skew->apart * kMicroseconds;
    json["last"] = measurement.skew->last * kMicroseconds;
  }
  json["queued"] = measurement.queued_seconds * kMicroseconds;
  return json;
}

// Returns how calls on CUDA memory went, in the words of FCCL_CUDA_PATH: what metrics count under another path of theirs went
// through host memory.
std::string path_of_cuda_calls(std::string_view in_metrics, const std::string& setting, bool staged) {
  if (in_metrics == "landed") return "host";
  if (in_metrics == "peer") return "peer";
  if (staged || in_metrics == "transfer") return "staged";
  return setting == "blocking" ? "blocking" : "bounce";
}

}  // namespace

JsonReport::JsonReport(const std::string& path, std::FILE* out) {
  const NewFile made = make_file(path);
  file_ = made.file;
  std::fprintf(out, file_ ? "# Writing JSON output to %s\n" : "# skipping json output; %s not accessible\n", made.path.c_str());
}

JsonReport::~JsonReport() {
  if (file_) std::fclose(file_);
}

void JsonReport::begin(const Beginning& beginning, const std::vector<std::string>& command,
                       const std::vector<std::string>& environment) {
  int library = 0;
  static_cast<void>(fcclGetVersion(&library));
  shows_iterations_ = beginning.arguments.per_iteration;
  shows_cpu_time_ = beginning.arguments.cpu_time;
  if (beginning.arguments.uses_gpus()) cuda_path_ = beginning.cuda_path;
  stages_ = beginning.arguments.uneven.has_value();
  iterations_ = beginning.arguments.iterations;
  document_ = {{"version", kFileVersion}, {"start_time", time_now()},       {"args", command},         {"env", environment},
               {"nccl_version", library}, {"config", config_of(beginning)}, {"results", Json::array()}};
}

void JsonReport::row(const Row& row, std::string_view program) {
  char root[16];
  std::snprintf(root, sizeof root, "%6i", row.root);
  Json json{{"size", row.bytes}, {"count", row.count}, {"type", row.type}, {"redop", row.op}, {"root", root}};
  const auto add = [&](const std::string& key, const Measurement& measurement) {
    json[key] = measurement_of(measurement, shows_cpu_time_);
    if (!measurement.path.empty())
      json[key]["path"] =
          cuda_path_ ? path_of_cuda_calls(measurement.path, *cuda_path_, stages_) : std::string(measurement.path);
    if (cuda_path_) json[key]["copied"] = measurement.copied;
    if (shows_iterations_ && measurement.iterations) json[key + "_per_iter"] = iterations_of(*measurement.iterations);
  };
  add("out_of_place", row.out_of_place);
  if (row.in_place)
    add("in_place", *row.in_place);
  else
    json["in_place"] = Json();
  json["actual_iterations"] = iterations_;
  json["experiment_name"] = program;
  document_["results"].push_back(std::move(json));
  mean_.add(row);
}

void JsonReport::end(const Ending& ending) {
  document_["out_of_bounds"] = {{"count", ending.bad_checks}, {"okay", word(ending.bad_checks == 0)}};
  document_["average_bus_bandwidth"] = {
      {"bandwidth", number(mean_.value())},
      {"okay", ending.min_bandwidth ? word(mean_.reaches(ending.min_bandwidth)) : "unchecked"}};
  document_["errors"] = Json::array();
  write();
}

void JsonReport::fail(std::string_view message) {
  document_["errors"] = Json::array({message});
  write();
}

void JsonReport::write() {
  if (!file_) return;
  document_["end_time"] = time_now();
  const std::string text = document_.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
  std::fwrite(text.data(), 1, text.size(), file_);
  std::fflush(file_);
}

}  // namespace fccl::perf
