// A consumer that reads a write's bytes without waiting for `arrived`: the thread sanitizer must report it.
#include <atomic>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <thread>
#include <vector>

#include "transports/fabric.h"

namespace fccl::core {

namespace {

constexpr size_t kBytes = 4096;
constexpr int kWrites = 200;

// Posts write after write, and polls until all have ended.
void produce(Transport& transport, Operation operation) {
  for (int ended = 0; ended < kWrites;) {
    const auto posted = transport.post(0, std::span(&operation, 1));
    if (posted.value() == 1) ++operation.tag;
    Completion found[8];
    ended += static_cast<int>(transport.poll(0, found).value());
    std::this_thread::yield();
  }
}

// Polls, but looks at the bytes whenever it likes.
size_t read_early(Transport& transport, const std::vector<std::byte>& bytes, const std::atomic<bool>& stop) {
  size_t sum = 0;
  while (!stop.load(std::memory_order_relaxed)) {
    Completion found[8];
    static_cast<void>(transport.poll(0, found).value());
    sum = std::accumulate(bytes.begin(), bytes.end(), sum, [](size_t so_far, std::byte byte) { return so_far + size_t(byte); });
  }
  return sum;
}

int run() {
  simulated::Fabric fabric;
  const auto producer = fabric.open();
  const auto consumer = fabric.open();
  std::vector<std::byte> source(kBytes, std::byte{1});
  std::vector<std::byte> target(kBytes);
  const MemoryId from = producer->register_memory(source, PeersMay::nothing).value();
  const MemoryId to = consumer->register_memory(target, PeersMay::write).value();
  const PeerId peer = producer->connect(0, consumer->address(0)).value();
  static_cast<void>(consumer->connect(0, producer->address(0)).value());
  const Operation operation = {
      .peer = peer, .memory = from, .local = source.data(), .bytes = kBytes, .remote = consumer->remote(to, 0)};
  std::atomic<bool> stop{false};
  std::thread other([&] {
    produce(*producer, operation);
    stop.store(true, std::memory_order_relaxed);
  });
  std::printf("read %zu\n", read_early(*consumer, target, stop));
  other.join();
  return 0;
}

}  // namespace

}  // namespace fccl::core

int main() { return fccl::core::run(); }
