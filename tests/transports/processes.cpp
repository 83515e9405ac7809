// Processes: several ends of a network in one test.
#include "transports/processes.h"

#include <gtest/gtest.h>

namespace fccl::core {

void Processes::start(std::vector<std::unique_ptr<Transport>> transports, int messages) {
  peers_.clear();
  processes.clear();
  next_tag_ = 1;
  for (auto& transport : transports) {
    Process process;
    process.transport = std::move(transport);
    process.bytes.assign(memory_bytes, static_cast<std::byte>(0xa0 + processes.size()));
    process.expected = process.bytes;
    ASSERT_NO_FATAL_FAILURE(register_memory_of(process));
    const auto reserved = process.transport->reserve_messages(messages);
    ASSERT_TRUE(reserved) << reserved.error().message;
    processes.push_back(std::move(process));
  }
}

void Processes::register_memory_of(Process& process) {
  const auto memory = process.transport->register_memory(process.bytes, PeersMay::nothing);
  ASSERT_TRUE(memory) << memory.error().message;
  process.memory = *memory;
  const auto landing = process.transport->register_memory(process.bytes, PeersMay::write);
  ASSERT_TRUE(landing) << landing.error().message;
  process.landing = *landing;
}

uint32_t Processes::bits_of(uint32_t immediate) {
  return immediate & static_cast<uint32_t>((uint64_t{1} << limits().immediate_bits) - 1);
}

PeerId Processes::peer(Way way) {
  const PeerId peer = connected(way);
  // Else the other would drop what comes.
  connected({.from = way.to, .to = way.from, .rail = way.rail});
  return peer;
}

PeerId Processes::connected(Way way) {
  for (const Known& known : peers_) {
    if (known.from == way.from && known.to == way.to && known.rail == way.rail) return known.peer;
  }
  const auto connected = transport(way.from).connect(way.rail, transport(way.to).address(way.rail));
  if (!connected) {
    ADD_FAILURE() << "connect: " << connected.error().message;
    return PeerId{};
  }
  peers_.push_back({way.from, way.to, way.rail, *connected});
  return *connected;
}

Operation Processes::write(Way way, size_t here, size_t bytes, size_t there, uint32_t immediate) {
  Operation operation = message(way, here, bytes);
  operation.kind = Operation::Kind::write;
  operation.immediate = immediate;
  operation.remote = transport(way.to).remote(process(way.to).landing, way.rail);
  operation.remote.address += there;
  return operation;
}

Operation Processes::message(Way way, size_t here, size_t bytes) {
  Process& sender = process(way.from);
  return {.kind = Operation::Kind::message,
          .peer = peer(way),
          .memory = sender.memory,
          .local = sender.bytes.data() + here,
          .bytes = bytes,
          .remote = {},
          .immediate = 0,
          .tag = next_tag_++};
}

void Processes::fill(int number, size_t at, size_t bytes, uint32_t salt) {
  uint32_t value = salt * 2654435761u + static_cast<uint32_t>(number) + 1;
  for (size_t i = at; i < at + bytes; ++i) {
    value = value * 1664525u + 1013904223u;
    process(number).bytes[i] = process(number).expected[i] = static_cast<std::byte>(value >> 24);
  }
}

void Processes::expect_copy(int from, size_t here, size_t bytes, int to, size_t there) {
  std::copy_n(process(from).expected.data() + here, bytes, process(to).expected.data() + there);
}

std::span<const std::byte> Processes::expected(int number, size_t at, size_t bytes) {
  return std::span<const std::byte>(process(number).expected).subspan(at, bytes);
}

std::span<const std::byte> Processes::actual(int number, size_t at, size_t bytes) {
  return std::span<const std::byte>(process(number).bytes).subspan(at, bytes);
}

void Processes::expect_memory() {
  for (size_t number = 0; number < processes.size(); ++number) {
    const Process& process = processes[number];
    if (process.bytes == process.expected) continue;
    const auto wrong = std::ranges::mismatch(process.bytes, process.expected).in1;
    ADD_FAILURE() << "process " << number << " differs at byte " << wrong - process.bytes.begin();
  }
}

void Processes::post(Way way, std::span<const Operation> operations) {
  drive_until([&] {
    const auto posted = transport(way.from).post(way.rail, operations);
    if (!posted) {
      ADD_FAILURE() << "post: " << posted.error().message;
      return true;
    }
    EXPECT_LE(*posted, operations.size());
    operations = operations.subspan(*posted);
    return operations.empty();
  });
}

void Processes::poll(int number) {
  Process& process = this->process(number);
  if (!process.transport) return;
  for (int rail = 0; rail < process.transport->limits().rails; ++rail) {
    std::vector<Completion> completions(room);
    const auto found = process.transport->poll(rail, completions);
    ASSERT_TRUE(found) << "poll: " << found.error().message;
    ASSERT_LE(*found, room);
    completions.resize(*found);
    for (const Completion& completion : completions) {
      process.found.push_back(
          {rail, completion.kind, completion.immediate, completion.tag, {completion.bytes.begin(), completion.bytes.end()}});
    }
    const size_t first = process.found.size() - completions.size();
    for (size_t i = 0; i < completions.size() && on_found; ++i) on_found(number, Finding(process.found[first + i]));
  }
}

bool Processes::drive_until(const std::function<bool()>& done) {
  const auto patience = std::chrono::steady_clock::now() + kPatience;
  while (!done()) {
    if (testing::Test::HasFailure()) return false;
    if (std::chrono::steady_clock::now() > patience) {
      ADD_FAILURE() << "what should happen did not within " << kPatience.count() << " s";
      return false;
    }
    drive(1);
  }
  return true;
}

void Processes::drive(int polls) {
  for (; polls > 0; --polls) {
    for (size_t number = 0; number < processes.size(); ++number) poll(static_cast<int>(number));
  }
}

size_t Processes::count(int number, Completion::Kind kind) const {
  const auto& found = processes[static_cast<size_t>(number)].found;
  return static_cast<size_t>(std::ranges::count(found, kind, &Finding::kind));
}

}  // namespace fccl::core
