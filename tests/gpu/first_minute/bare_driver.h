// The driver of a GPU alone, without a library of CUDA and without this project's: what the first minute on a GPU asks it by.
#pragma once

#include <cuda.h>
#include <dlfcn.h>

#include <atomic>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "team.h"

namespace fccl::gpu::bare {

inline constexpr size_t kPage = 4096;

// "CUDA_ERROR_NOT_SUPPORTED".
std::string text_of(CUresult result);
// Throws std::runtime_error with what was called and what came of it.
void must(CUresult result, const char* called);

// Throws Unsupported where the driver has no such function, or is not there.
void* find(const char* name);
template <class Function>
Function* function(const char* name) {
  return std::bit_cast<Function*>(find(name));
}
// A function of the driver, by the name that the driver has for it: the macros of cuda.h give it its version.
#define FCCL_BARE_TEXT(name) #name
#define FCCL_BARE_NAME(name) FCCL_BARE_TEXT(name)
#define BARE(name) (::fccl::gpu::bare::function<decltype(name)>(FCCL_BARE_NAME(name)))
#define MUST(call) ::fccl::gpu::bare::must((call), #call)

// Makes GPU 0 current in the calling thread, the first time in its process. Throws Unsupported where there is no GPU.
void open();
int attribute(CUdevice_attribute which);

CUstream make_stream(int priority = 0);
CUdeviceptr device_memory(size_t bytes);

// Pinned memory of the process's own mapping, as a lane of the library has it, until the process ends.
class Pinned {
 public:
  explicit Pinned(size_t bytes);
  CUdeviceptr device(size_t offset = 0) const { return device_ + offset; }
  // Word `which`, in a line of its own, zero at first.
  std::atomic<uint64_t>& word(size_t which) { return *reinterpret_cast<std::atomic<uint64_t>*>(host_ + which * kLine); }
  CUdeviceptr word_at(size_t which) const { return device_ + which * kLine; }

 private:
  static constexpr size_t kLine = 64;
  std::byte* host_;
  CUdeviceptr device_ = 0;
};

// Pages of the process's own, private unless `file` is one.
std::byte* pages(size_t bytes, int protection, int file = -1);

// A wait for a word to come to a value, or a write of it.
struct Operation {
  bool waits;
  CUdeviceptr word;
  uint64_t value;
};
CUresult enqueue(CUstream stream, const std::vector<Operation>& operations);
CUresult copy(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream);

double ms_since(Clock::time_point from);
bool happens(double ms, const std::function<bool()>& what);
// True if the stream is done within so many ms, well or not.
bool drains(CUstream stream, double ms);

// Tells if a call of another thread returns within a second, and its result; `release` lets it return at last.
std::string returns(const std::function<CUresult()>& call, const std::function<void()>& release);
// The same call in another thread, and its result.
CUresult in_another_thread(const std::function<CUresult()>& call);

std::string text(const char* format, ...) __attribute__((format(printf, 1, 2)));
// An answer that the library needs in one way or in none.
void answer(Rank& rank, std::string what, std::string note);

}  // namespace fccl::gpu::bare
