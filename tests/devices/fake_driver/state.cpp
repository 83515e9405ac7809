// State: made from the environment, once per process.
#include "devices/fake_driver/state.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string_view>

namespace fccl::core::simulated {

namespace {

std::mutex mutex;
FakeDriver* driver = nullptr;
pid_t owner = 0;  // the process that made the driver

uint64_t number_of(const char* variable, uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr || *text == '\0' ? otherwise : std::strtoull(text, nullptr, 10);
}

bool is_text(const char* variable, std::string_view text) {
  const char* const given = std::getenv(variable);
  return given != nullptr && given == text;
}

int visible_gpus() {
  const auto all = static_cast<int>(number_of("FAKE_CUDA_GPUS", 1));
  const char* const listed = std::getenv("CUDA_VISIBLE_DEVICES");
  if (listed == nullptr) return all;
  const std::string_view list(listed);
  return list.empty() ? 0 : std::min(all, static_cast<int>(std::ranges::count(list, ',')) + 1);
}

GpuOptions options_of(int ordinal) {
  GpuOptions options{.ordinal = ordinal};
  options.seed = number_of("FAKE_CUDA_SEED", 1) + static_cast<uint64_t>(ordinal);
  options.waits_for_words = number_of("FAKE_CUDA_WORDS", 1) != 0;
  options.pins_read_only = number_of("FAKE_CUDA_READ_ONLY", 1) != 0;
  options.lends = number_of("FAKE_CUDA_LENDS", 1) != 0;
  options.cannot_reach = number_of("FAKE_CUDA_APART", 0) != 0 ? ~(uint64_t{1} << ordinal) : 0;
  options.set_up_waits = number_of("FAKE_CUDA_SET_UP_WAITS", 1) != 0;
  options.loads_lazily = !is_text("CUDA_MODULE_LOADING", "EAGER");
  options.queue_slots = number_of("FAKE_CUDA_SLOTS", options.queue_slots);
  options.connections = static_cast<int>(number_of("CUDA_DEVICE_MAX_CONNECTIONS", static_cast<uint64_t>(options.connections)));
  options.takes_host_addresses = true;
  options.delay_us = static_cast<int>(number_of("FAKE_CUDA_DELAY_US", static_cast<uint64_t>(options.delay_us)));
  options.fails_call = number_of("FAKE_CUDA_FAILS_CALL", 0);
  options.breaks_at_operation = number_of("FAKE_CUDA_BREAKS_AT", 0);
  options.stops_at_operation = number_of("FAKE_CUDA_STOPS_AT", 0);
  return options;
}

}  // namespace

CUresult initialise() {
  const std::scoped_lock lock(mutex);
  if (driver != nullptr) return owner == ::getpid() ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
  const int count = visible_gpus();
  if (count <= 0) return CUDA_ERROR_NO_DEVICE;
  auto* const made = new FakeDriver;
  for (int ordinal = 0; ordinal < count; ++ordinal) made->gpus.push_back(std::make_unique<Gpu>(options_of(ordinal)));
  owner = ::getpid();
  driver = made;
  return CUDA_SUCCESS;
}

FakeDriver* fake_driver() { return owner == ::getpid() ? driver : nullptr; }

Gpu* gpu_at(CUdevice device) {
  FakeDriver* const made = fake_driver();
  if (made == nullptr || device < 0 || static_cast<size_t>(device) >= made->gpus.size()) return nullptr;
  return made->gpus[static_cast<size_t>(device)].get();
}

CUresult result_of(const Refusal& refusal) {
  if (refusal.is_misuse()) std::fprintf(stderr, "fake CUDA driver: %s\n", refusal.sentence.c_str());
  switch (refusal.why) {
    case Refusal::Why::not_current:
      return CUDA_ERROR_INVALID_CONTEXT;
    case Refusal::Why::invalid:
      return CUDA_ERROR_INVALID_VALUE;
    case Refusal::Why::already_pinned:
      return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    case Refusal::Why::not_pinned:
      return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    case Refusal::Why::capturing:
      return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    case Refusal::Why::unsupported:
      return CUDA_ERROR_NOT_SUPPORTED;
    case Refusal::Why::injected:
      return CUDA_ERROR_LAUNCH_FAILED;
    case Refusal::Why::broken:
      return CUDA_ERROR_ILLEGAL_ADDRESS;
  }
  return CUDA_ERROR_UNKNOWN;
}

}  // namespace fccl::core::simulated
