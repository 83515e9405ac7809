// Opens one GPU after the other until there is no further one.
#include "fccl_info/gpus_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iostream>
#include <memory>
#include <utility>
#include <vector>

#include "device/device.h"
#include "fccl_info/json_text.h"
#include "fccl_info/wrong_words.h"

namespace fccl::core {
namespace {

struct Gpus {
  std::vector<std::shared_ptr<Device>> found;
  std::string why_none;
};

// A machine without a GPU is an answer, not a failure.
Result<Gpus> find_gpus() {
  Gpus gpus;
  for (int ordinal = 0;; ++ordinal) {
    auto gpu = open_device(ordinal);
    if (gpu) {
      gpus.found.push_back(std::move(*gpu));
      continue;
    }
    if (gpu.error().code == fcclInvalidArgument) return gpus;
    if (ordinal > 0 || gpu.error().code != fcclSystemError) return fail(gpu.error());
    gpus.why_none = gpu.error().message;
    return gpus;
  }
}

// The other GPUs of the process whose memory this one can read, by their numbers.
std::vector<int> reached_by(const Device& gpu, const Gpus& all) {
  std::vector<int> others;
  for (const auto& other : all.found)
    if (other.get() != &gpu && gpu.may_reach(other->limits().bus_id)) others.push_back(other->limits().ordinal);
  return others;
}

std::string text_of(const Device& device, const Gpus& all) {
  const DeviceLimits& gpu = device.limits();
  const std::vector<int> others = reached_by(device, all);
  return fmt::format(
      "gpu {} at {}: {}\n  identity {}\n  waits for 64-bit words: {}\n  lends memory to other processes: {}\n  sums by "
      "kernels: {}\n  reaches GPUs: {}\n",
      gpu.ordinal, gpu.bus_id, gpu.name, gpu.identity,
      gpu.waits_for_words ? "yes, so FCCL_CUDA_PATH=auto takes peer, host and bounce"
                          : "no, so FCCL_CUDA_PATH=auto takes blocking",
      gpu.lends ? "yes" : "no, so no call takes the path peer",
      gpu.why_no_sums.empty() ? "yes" : fmt::format("no, since {}", gpu.why_no_sums),
      others.empty() ? "none" : fmt::format("{}", fmt::join(others, " ")));
}

Json json_of(const Device& device, const Gpus& all) {
  const DeviceLimits& gpu = device.limits();
  return {{"ordinal", gpu.ordinal},
          {"pci", gpu.bus_id},
          {"name", gpu.name},
          {"identity", gpu.identity},
          {"waits_for_words", gpu.waits_for_words},
          {"lends", gpu.lends},
          {"sums", gpu.why_no_sums.empty()},
          {"reaches", reached_by(device, all)}};
}

std::string write(const Gpus& gpus, Form form) {
  if (form == Form::text) {
    std::string text = gpus.why_none.empty() ? "" : gpus.why_none + "\n";
    for (const auto& gpu : gpus.found) text += text_of(*gpu, gpus);
    return text;
  }
  Json found = Json::array();
  for (const auto& gpu : gpus.found) found.push_back(json_of(*gpu, gpus));
  Json json{{"gpus", std::move(found)}};
  if (!gpus.why_none.empty()) json["why_none"] = gpus.why_none;
  return json_text(json);
}

void hold() {
  while (std::cin.ignore()) continue;
}

}  // namespace

Result<std::string> list_gpus(Words words, Form form) {
  if (!words.empty() && words.front() != "--hold")
    return wrong(fmt::format("gpus takes --hold or nothing, but got '{}'", words.front()));
  FCCL_TRY_ASSIGN(const Gpus gpus, find_gpus());
  std::string text = write(gpus, form);
  if (words.empty()) return text;
  std::cout << std::exchange(text, "") << std::flush;
  hold();
  return text;
}

}  // namespace fccl::core
