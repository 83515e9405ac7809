// Slots in the memory of simulated GPUs, and the program of steps over them: this test plays the workers of all ranks.
#include "landing/peer_landing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include "device/lane.h"
#include "devices/simulated_gpu.h"
#include "landing/step_program.h"

namespace fccl::core::simulated {

namespace {

constexpr size_t kSlotBytes = 4096;
constexpr size_t kSlots = kSlotBytes * LandingSlots::kSlots;

template <class T>
T expect(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  return std::move(*result);
}

uint8_t value_of(int rank, size_t index, int call) {
  return static_cast<uint8_t>(index * 7 + index / 251 + static_cast<size_t>(rank * 31 + call * 101));
}

// A rank, with a lane and slots that its GPU and those of all others reach.
struct Rank {
  std::shared_ptr<SimulatedGpu> gpu;
  Queue user{};
  std::unique_ptr<DeviceLane> lane{};
  std::unique_ptr<LandingSlots> made{};
};

class Ranks {
 public:
  // `gpus`: which the ranks share in turn.
  Ranks(int ranks, int gpus, const GpuOptions& options) {
    std::vector<std::shared_ptr<SimulatedGpu>> all;
    for (int i = 0; i < gpus; ++i) {
      GpuOptions own = options;
      own.ordinal = i;
      own.seed += static_cast<uint64_t>(i);
      all.push_back(std::make_shared<SimulatedGpu>(own));
    }
    for (int rank = 0; rank < ranks; ++rank) {
      Rank made{.gpu = all[static_cast<size_t>(rank % gpus)]};
      made.user = made.gpu->make_user_queue();
      const Device::Use use(*made.gpu);
      made.lane = expect(DeviceLane::make(made.gpu, {.buffer_bytes = 4096, .queue_entries = 64}));
      made.made = expect(PeerLanding::make(made.gpu, PeerLanding::Slots::gather, kSlots, rank, ranks));
      ranks_.push_back(std::move(made));
    }
    for (int rank = 0; rank < ranks; ++rank) reach_all(rank);
    for (Rank& rank : ranks_) {
      EXPECT_TRUE(rank.lane->set_landing(std::move(rank.made), true));
    }
  }
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;
  ~Ranks() {
    for (Rank& rank : ranks_) {
      const Device::Use use(*rank.gpu);
      rank.lane.reset();
    }
  }

  // Runs a call on all ranks, and returns what is in their outputs.
  std::vector<std::vector<uint8_t>> run(const Signature& signature, bool in_place, int call) {
    std::vector<std::byte*> outputs;
    const bool gathers = signature.collective == fcclCollAllGather;
    const size_t bytes = signature.count, all = gathers ? bytes * ranks_.size() : bytes;
    for (int i = 0; i < static_cast<int>(ranks_.size()); ++i) {
      Rank& rank = ranks_[static_cast<size_t>(i)];
      std::byte* const recv = rank.gpu->allocate(MemoryPlace::this_device, all);
      std::byte* const send = !in_place ? rank.gpu->allocate(MemoryPlace::this_device, bytes)
                              : gathers ? recv + static_cast<size_t>(i) * bytes
                                        : recv;
      if (gathers || i == signature.root) {
        std::vector<uint8_t> input(bytes);
        for (size_t at = 0; at < bytes; ++at) input[at] = value_of(i, at, call);
        rank.gpu->write(send, std::as_bytes(std::span(input)));
      }
      enqueue(i, {signature, send, recv});
      outputs.push_back(recv);
    }
    std::vector<std::vector<uint8_t>> found;
    for (size_t i = 0; i < ranks_.size(); ++i) {
      while (!is_idle(ranks_[i])) relay();
      ranks_[i].gpu->synchronize(ranks_[i].user);
      found.emplace_back(all);
      ranks_[i].gpu->read(outputs[i], std::as_writable_bytes(std::span(found.back())));
    }
    return found;
  }

 private:
  void reach_all(int rank) {
    Rank& own = ranks_[static_cast<size_t>(rank)];
    const Device::Use use(*own.gpu);
    for (int peer = 0; peer < static_cast<int>(ranks_.size()); ++peer)
      if (peer != rank) {
        EXPECT_TRUE(own.made->reach(peer, 1, ranks_[static_cast<size_t>(peer)].made->place(), Descriptor{}));
      }
  }

  void enqueue(int rank, const Call& call) {
    DeviceLane& lane = *ranks_[static_cast<size_t>(rank)].lane;
    const Device::Use use(*ranks_[static_cast<size_t>(rank)].gpu);
    const Steps steps(call, rank, lane.landing()->slot_bytes());
    GatherProgram program(lane, steps);
    const AwaitRoom await_room = [&](size_t entries) -> Result<void> {
      while (!lane.has_room(entries)) relay();
      return {};
    };
    EXPECT_TRUE(await_room(program.entries_to_begin()));
    EXPECT_TRUE(lane.fork(ranks_[static_cast<size_t>(rank)].user));
    EXPECT_TRUE(program.enqueue(nullptr, fcclUint8, await_room));
    program.end();
    EXPECT_TRUE(lane.join(ranks_[static_cast<size_t>(rank)].user));
  }

  bool is_idle(const Rank& rank) {
    const Device::Use use(*rank.gpu);
    return expect(rank.lane->is_idle());
  }

  uint64_t least(DeviceWord StepWords::* word) const {
    uint64_t least = UINT64_MAX;
    for (const Rank& rank : ranks_) least = std::min(least, (rank.lane->words().steps.*word).load());
    return least;
  }

  // Tells all GPUs what all have done.
  void relay() {
    const uint64_t done = least(&StepWords::done), taken = least(&StepWords::taken);
    for (Rank& rank : ranks_) {
      release_to_device(rank.lane->words().steps.all_done, done);
      release_to_device(rank.lane->words().steps.all_taken, taken);
    }
    std::this_thread::yield();
  }

  std::vector<Rank> ranks_;
};

void expect_right(int ranks, const std::vector<std::vector<uint8_t>>& found, const Signature& signature, int call) {
  const size_t bytes = signature.count;
  for (const std::vector<uint8_t>& output : found)
    for (size_t at = 0; at < output.size(); ++at) {
      const int from = signature.root >= 0 ? signature.root : static_cast<int>(at / bytes);
      ASSERT_EQ(output[at], value_of(from, at % bytes, call)) << "byte " << at << " of " << ranks << " ranks, call " << call;
    }
}

void expect_all_right(int ranks, int gpus, const GpuOptions& options) {
  Ranks all(ranks, gpus, options);
  int call = 0;
  // Each program fits into its queue whole: a rank that waited for room would wait for ranks that are enqueued after it.
  for (const size_t bytes : {size_t{1}, size_t{333}, kSlotBytes, kSlotBytes + 1})
    for (const bool in_place : {false, true}) {
      const Signature gather{fcclCollAllGather, fcclUint8, ReduceOp::sum, -1, bytes};
      ++call;
      expect_right(ranks, all.run(gather, in_place, call), gather, call);
      const Signature broadcast{fcclCollBroadcast, fcclUint8, ReduceOp::sum, call % ranks, bytes};
      expect_right(ranks, all.run(broadcast, in_place, call), broadcast, call);
    }
}

TEST(PeerLanding, brings_every_byte_of_every_rank) {
  for (int ranks = 2; ranks <= 8; ++ranks) expect_all_right(ranks, ranks, {.seed = static_cast<uint64_t>(ranks)});
}

TEST(PeerLanding, serves_ranks_that_share_gpus) {
  expect_all_right(4, 2, {.delay_us = 300});
  expect_all_right(3, 1, {});
}

// As ranks of two processes would, but that both are in this one.
TEST(PeerLanding, borrows_what_another_process_lends_once_for_all_ranks) {
  const auto gpu = std::make_shared<SimulatedGpu>();
  const Device::Use use(*gpu);
  const auto lender = expect(PeerLanding::make(gpu, PeerLanding::Slots::gather, kSlots, 0, 3));
  LandingPlace elsewhere = lender->place();
  ++elsewhere.memory[0];
  const Descriptor lent = expect(lender->lend()), none;
  std::vector<std::unique_ptr<LandingSlots>> borrowers;
  for (int rank = 1; rank < 3; ++rank) {
    borrowers.push_back(expect(PeerLanding::make(gpu, PeerLanding::Slots::gather, kSlots, rank, 3)));
    ASSERT_TRUE(borrowers.back()->reach(0, 1, elsewhere, rank == 1 ? lent : none));
  }
  EXPECT_NE(borrowers[0]->device_slot(0, 5), lender->device_slot(0, 5));
  EXPECT_EQ(borrowers[0]->device_slot(0, 5), borrowers[1]->device_slot(0, 5));
  const std::vector<std::byte> bytes(64, std::byte{42});
  gpu->write(lender->device_slot(0, 5), bytes);
  std::vector<std::byte> found(64);
  borrowers.erase(borrowers.begin());
  gpu->read(borrowers[0]->device_slot(0, 5), found);
  EXPECT_EQ(found, bytes);
}

TEST(PeerLanding, is_refused_what_nobody_has_lent) {
  const auto gpu = std::make_shared<SimulatedGpu>();
  const Device::Use use(*gpu);
  const auto slots = expect(PeerLanding::make(gpu, PeerLanding::Slots::gather, kSlots, 0, 2));
  const auto reached = slots->reach(1, 4711, LandingPlace{.is_made = true, .arena = {}, .offset = 0, .memory = {1, 2}}, {});
  ASSERT_FALSE(reached);
  EXPECT_NE(reached.error().message.find("the process with pid 4711 has lent no memory"), std::string::npos);
}

TEST(PeerLanding, is_refused_by_a_gpu_that_cannot_reach_the_other) {
  const auto near = std::make_shared<SimulatedGpu>(GpuOptions{.ordinal = 0, .cannot_reach = 2, .abort_on_misuse = false});
  const auto far = std::make_shared<SimulatedGpu>(GpuOptions{.ordinal = 1, .abort_on_misuse = false});
  EXPECT_FALSE(near->may_reach(far->limits().bus_id));
  EXPECT_TRUE(far->may_reach(near->limits().bus_id));
  std::unique_ptr<LandingSlots> theirs;
  {
    const Device::Use use(*far);
    theirs = expect(PeerLanding::make(far, PeerLanding::Slots::gather, kSlots, 1, 2));
  }
  const Device::Use use(*near);
  const auto slots = expect(PeerLanding::make(near, PeerLanding::Slots::gather, kSlots, 0, 2));
  EXPECT_FALSE(slots->reach(1, 1, theirs->place(), Descriptor{}));
  // Nobody let it.
  std::byte* const memory = near->allocate(MemoryPlace::this_device, 64);
  EXPECT_FALSE(near->copy(near->make_user_queue(), {memory, theirs->device_slot(1, 0), 64}));
}

}  // namespace

}  // namespace fccl::core::simulated
