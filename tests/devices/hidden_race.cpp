// A program that lacks an await: stream a writes, stream b reads, and only the host's unrelated calls lie between. The thread
// sanitizer must report it, as it would not if a queue of the simulation gave an edge to the host.
//   hidden_race            the race
//   hidden_race awaits     the same with a mark, which has none
#include <chrono>
#include <cstdio>
#include <thread>

#include "devices/simulated_gpu.h"

using fccl::core::Copy;
using fccl::core::Device;
using fccl::core::Mark;
using fccl::core::MemoryPlace;
using fccl::core::Queue;
using fccl::core::simulated::SimulatedGpu;

namespace {

void let_it_happen() { std::this_thread::sleep_for(std::chrono::milliseconds(50)); }

bool enqueue(SimulatedGpu& gpu, Queue queue, const Copy& copy) { return gpu.copy(queue, copy).has_value(); }

}  // namespace

int main(int count, char**) {
  SimulatedGpu gpu;
  const Device::Use use(gpu);
  std::byte* const input = gpu.allocate(MemoryPlace::this_device, 64);
  std::byte* const data = gpu.allocate(MemoryPlace::this_device, 64);
  std::byte* const output = gpu.allocate(MemoryPlace::this_device, 64);
  const Queue a = *gpu.make_queue(), b = *gpu.make_queue();
  const Mark mark = *gpu.make_mark();
  bool ok = enqueue(gpu, a, {data, input, 64});
  let_it_happen();
  ok = ok && enqueue(gpu, a, {input, input + 32, 32});  // the calls that hid it
  ok = ok && gpu.make_queue() && gpu.is_capturing(a);
  if (count > 1) ok = ok && gpu.record(a, mark) && gpu.await(b, mark);
  let_it_happen();
  ok = ok && enqueue(gpu, b, {output, data, 64});  // reads what a wrote
  let_it_happen();
  ok = ok && gpu.is_capturing(b);
  std::puts(ok ? "done" : "a call failed");
  return ok ? 0 : 1;
}
