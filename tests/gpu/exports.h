// Exports: functions that Python calls through ctypes, which give 0, or 1 and a text of last_error. For one file of a library.
#pragma once

#include <exception>
#include <string>

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace fccl::gpu {

inline std::string& last_text() {
  static std::string text;
  return text;
}

template <class Part>
int guarded(const Part& part) {
  try {
    part();
    return 0;
  } catch (const std::exception& thrown) {
    last_text() = thrown.what();
  }
  return 1;
}

}  // namespace fccl::gpu

EXPORTED const char* last_error() { return fccl::gpu::last_text().c_str(); }
