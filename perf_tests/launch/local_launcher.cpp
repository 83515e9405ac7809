// The launcher library of processes that no mpirun started: they meet in a file, on one machine.
//
// FCCL_TESTS_LOCAL=INDEX/COUNT:FILE tells each process its place. FILE is empty when the first one starts, and each run needs a
// new one.
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "launch/launcher.h"

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kMostProcesses = 64;
constexpr std::size_t kPart = 64 << 10;  // bytes that a process gives to the others at a time
constexpr int kCouldNotMeet = 1;
constexpr auto kLook = std::chrono::milliseconds(100);

// One process's part of the file. Each process writes only its own.
struct Seat {
  std::atomic<std::int32_t> id;
  std::atomic<std::int32_t> has_left;
  std::atomic<std::uint64_t> meetings;  // number of meetings that it has come to
  unsigned char told[kPart];
};

struct File {
  std::atomic<std::int32_t> status;  // exit status with which this process ended the run; zero if it has not
  Seat seats[kMostProcesses];
};

File* file = nullptr;
int own = 0;
int count = 0;

bool is_gone(const Seat& seat) { return seat.id != 0 && seat.has_left == 0 && kill(seat.id, 0) != 0; }

[[noreturn]] void end_with(int status) {
  std::fflush(nullptr);
  std::_Exit(status);
}

// Ends this process if another one has ended the run, or has died, as an mpirun would.
void look_at_the_others() {
  if (const int status = file->status; status != 0) end_with(status);
  for (int process = 0; process < count; ++process) {
    if (!is_gone(file->seats[process])) continue;
    std::fprintf(stderr, "process %d of this run is gone, so process %d ends\n", process, own);
    end_with(kCouldNotMeet);
  }
}

// Returns an errno if FCCL_TESTS_LOCAL is malformed, or the file cannot be used.
int start(bool, const char* place, int* process, int* processes) {
  char path[4096] = "";
  if (!place || std::sscanf(place, "%d/%d:%4095s", &own, &count, path) != 3) return EINVAL;
  if (count < 1 || count > kMostProcesses || own < 0 || own >= count) return EINVAL;
  const int descriptor = open(path, O_RDWR | O_CLOEXEC);
  if (descriptor < 0 || ftruncate(descriptor, sizeof(File)) != 0) return errno;
  void* memory = mmap(nullptr, sizeof(File), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (memory == MAP_FAILED) return errno;
  close(descriptor);
  file = static_cast<File*>(memory);
  file->seats[own].id = getpid();
  *process = own;
  *processes = count;
  return 0;
}

void finish() { file->seats[own].has_left = 1; }

void barrier() {
  const std::uint64_t meeting = ++file->seats[own].meetings;
  auto looked = Clock::now();
  for (int process = 0; process < count; ++process) {
    while (file->seats[process].meetings < meeting) {
      sched_yield();
      if (Clock::now() - looked < kLook) continue;
      look_at_the_others();
      looked = Clock::now();
    }
  }
}

void all_gather(const void* told, std::size_t bytes, void* all) {
  for (std::size_t done = 0; done < bytes; done += kPart) {
    const std::size_t part = std::min(kPart, bytes - done);
    std::memcpy(file->seats[own].told, static_cast<const unsigned char*>(told) + done, part);
    barrier();
    for (int process = 0; process < count; ++process)
      std::memcpy(static_cast<unsigned char*>(all) + static_cast<std::size_t>(process) * bytes + done,
                  file->seats[process].told, part);
    barrier();
  }
}

void abort(int status) { file->status = status; }

const char* version() { return "processes of one machine (FCCL_TESTS_LOCAL)"; }
bool supports(int, int, int) { return false; }
int call(const FcclPeerCall*) { return ENOSYS; }

constexpr FcclLauncher kLauncher{.start = start,
                                 .finish = finish,
                                 .barrier = barrier,
                                 .all_gather = all_gather,
                                 .abort = abort,
                                 .version = version,
                                 .supports = supports,
                                 .call = call};

}  // namespace

extern "C" __attribute__((visibility("default"))) const FcclLauncher* fccl_launcher() { return &kLauncher; }
