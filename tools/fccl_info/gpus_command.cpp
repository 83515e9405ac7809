// Opens one GPU after the other until there is no further one.
#include "fccl_info/gpus_command.h"

#include <fmt/format.h>

#include <iostream>
#include <utility>
#include <vector>

#include "device/device.h"
#include "fccl_info/json_text.h"
#include "fccl_info/wrong_words.h"

namespace fccl::core {
namespace {

struct Gpus {
  std::vector<DeviceLimits> found;
  std::string why_none;
};

// A machine without a GPU is an answer, not a failure.
Result<Gpus> find_gpus() {
  Gpus gpus;
  for (int ordinal = 0;; ++ordinal) {
    const auto gpu = open_device(ordinal);
    if (gpu) {
      gpus.found.push_back((*gpu)->limits());
      continue;
    }
    if (gpu.error().code == fcclInvalidArgument) return gpus;
    if (ordinal > 0 || gpu.error().code != fcclSystemError) return fail(gpu.error());
    gpus.why_none = gpu.error().message;
    return gpus;
  }
}

std::string text_of(const DeviceLimits& gpu) {
  return fmt::format(
      "gpu {} at {}: {}\n  identity {}\n  waits for 64-bit words: {}\n", gpu.ordinal, gpu.bus_id, gpu.name, gpu.identity,
      gpu.waits_for_words ? "yes, so FCCL_CUDA_PATH=auto takes host and bounce" : "no, so FCCL_CUDA_PATH=auto takes blocking");
}

std::string write(const Gpus& gpus, Form form) {
  if (form == Form::text) {
    std::string text = gpus.why_none.empty() ? "" : gpus.why_none + "\n";
    for (const DeviceLimits& gpu : gpus.found) text += text_of(gpu);
    return text;
  }
  Json found = Json::array();
  for (const DeviceLimits& gpu : gpus.found)
    found.push_back({{"ordinal", gpu.ordinal},
                     {"pci", gpu.bus_id},
                     {"name", gpu.name},
                     {"identity", gpu.identity},
                     {"waits_for_words", gpu.waits_for_words}});
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
