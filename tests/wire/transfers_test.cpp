// Transfers between hosts of one rank each, over networks that keep no order: what arrives, in which order, and who is
// believed.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <deque>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <thread>

#include "metrics/statistics.h"
#include "os/clock.h"
#include "segment/segment.h"
#include "transfers/transfer_lane.h"
#include "transports/fabric.h"
#include "wire/endpoint.h"
#include "wire/introduction.h"
#include "wire/lane.h"
#include "wire/notice_lane.h"

namespace fccl::core::testing {
namespace {

using namespace std::chrono_literals;

constexpr size_t kEager = 256;
constexpr size_t kSlot = 1024;

std::byte value(int from, int to, int number, size_t index) {
  return static_cast<std::byte>(static_cast<size_t>(from * 53 + to * 17 + number * 7) + index % 241 + index / 241);
}

class Ranks {
 public:
  explicit Ranks(int ranks, const simulated::FabricOptions& options = {}) : fabric_(options) {
    std::vector<int> all(static_cast<size_t>(ranks));
    std::iota(all.begin(), all.end(), 0);
    std::vector<std::unique_ptr<NoticeLane>> networks;
    std::vector<Introduction> introductions;
    for (int rank = 0; rank < ranks; ++rank) {
      endpoints_.push_back(std::make_unique<Endpoint>(fabric_.open()));
      auto lane = NoticeLane::open(*endpoints_.back(), {.ranks = all,
                                                        .me = rank,
                                                        .window = 4,
                                                        .slot_bytes = kSlot,
                                                        .stages = 3,
                                                        .payload_bytes = kEager + sizeof(Notice),
                                                        .first_sequence = 0xfffffff8,
                                                        .token = 1000 + static_cast<uint64_t>(rank),
                                                        .notices = 16,
                                                        .notices_out = 4});
      EXPECT_TRUE(lane) << lane.error().message;
      introductions.push_back((*lane)->wire().introduction());
      networks.push_back(std::move(*lane));
    }
    for (int rank = 0; rank < ranks; ++rank) {
      const auto connected = networks[rank]->wire().connect(introductions);
      EXPECT_TRUE(connected) << connected.error().message;
      network_.push_back(networks[rank].get());
      const SegmentShape shape{1, kEager, kSlot, ranks};
      segments_.push_back(*Segment::map(*Segment::make(shape), shape));
      segments_.back()->initialise(1);
      const std::array<int, 1> here{rank};
      lanes_.push_back(std::make_unique<TransferLane>(segments_.back(), here, 0, ranks, statistics_.emplace_back()));
      lanes_.back()->span_hosts(std::move(networks[rank]), here);
    }
  }

  simulated::Fabric& fabric() { return fabric_; }
  TransferLane& lane(int rank) { return *lanes_[rank]; }
  NoticeLane& network(int rank) { return *network_[rank]; }
  Endpoint& endpoint(int rank) { return *endpoints_[rank]; }

 private:
  simulated::Fabric fabric_;
  std::vector<std::unique_ptr<Endpoint>> endpoints_;
  std::vector<std::shared_ptr<Segment>> segments_;
  std::deque<Statistics> statistics_;
  std::vector<NoticeLane*> network_;
  std::vector<std::unique_ptr<TransferLane>> lanes_;
};

struct Way {
  int from, to, number, tag;
};

struct Operation {
  Way way;
  std::vector<std::byte> buffer;
  std::unique_ptr<TransferOperation> operation;

  static Operation send(const Way& way, size_t bytes) {
    Operation made{way, std::vector<std::byte>(bytes), nullptr};
    for (size_t i = 0; i < bytes; ++i) made.buffer[i] = value(way.from, way.to, way.number, i);
    made.operation = std::make_unique<TransferOperation>(
        TransferEnd{Direction::send, way.to, {way.tag, fcclUint8, bytes}, made.buffer.data(), nullptr, nullptr});
    return made;
  }
  static Operation receive(const Way& way, size_t bytes) {
    Operation made{way, std::vector<std::byte>(bytes, std::byte{0xa5}), nullptr};
    made.operation = std::make_unique<TransferOperation>(
        TransferEnd{Direction::receive, way.from, {way.tag, fcclUint8, bytes}, nullptr, made.buffer.data(), nullptr});
    return made;
  }
  bool is_right() const {
    for (size_t i = 0; i < buffer.size(); ++i)
      if (buffer[i] != value(way.from, way.to, way.number, i)) return false;
    return operation->has_ended() && !operation->differs;
  }
};

// Until all have ended.
bool finish(TransferLane& lane, std::deque<Operation>& operations) {
  const Deadline deadline = Deadline::after(60s);
  for (const Operation& each : operations)
    while (!each.operation->has_ended()) {
      lane.progress();
      if (deadline.passed()) return false;
      std::this_thread::yield();
    }
  return true;
}

size_t size_of_transfer(std::mt19937& dice) {
  constexpr std::array<size_t, 10> kSizes{0, 1, 24, kEager - 1, kEager, kEager + 1, kSlot, kSlot + 1, 5 * kSlot, 40'000};
  return kSizes[dice() % kSizes.size()];
}

// Every rank sends to every other one, `times` with each of three tags, and receives tag by tag.
void exchange(const simulated::FabricOptions& options, int ranks, int times) {
  Ranks group(ranks, options);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      std::deque<Operation> operations;
      const auto size_of = [&](int from, int to, int number) {
        std::mt19937 dice(static_cast<unsigned>(from * 1000 + to * 100 + number) + static_cast<unsigned>(options.seed));
        return size_of_transfer(dice);
      };
      for (int number = 0; number < 3 * times; ++number)
        for (int peer = 0; peer < ranks; ++peer) {
          operations.push_back(Operation::send({rank, peer, number, number % 3}, size_of(rank, peer, number)));
          EXPECT_TRUE(group.lane(rank).start(*operations.back().operation));
        }
      for (int tag = 2; tag >= 0; --tag)
        for (int number = tag; number < 3 * times; number += 3)
          for (int peer = 0; peer < ranks; ++peer) {
            operations.push_back(Operation::receive({peer, rank, number, tag}, size_of(peer, rank, number)));
            EXPECT_TRUE(group.lane(rank).start(*operations.back().operation));
          }
      EXPECT_TRUE(finish(group.lane(rank), operations));
      for (const Operation& each : operations)
        EXPECT_TRUE(each.is_right()) << each.way.from << " to " << each.way.to << ", " << each.way.number;
      group.lane(rank).leave(Deadline::after(10s));
      EXPECT_TRUE(group.endpoint(rank).await_taken(Deadline::after(20s)));
    });
  for (std::thread& thread : threads) thread.join();
}

TEST(WireTransfers, arrive_whole_and_in_order_over_a_network_that_keeps_order) { exchange({}, 2, 40); }

TEST(WireTransfers, arrive_whole_and_in_order_over_a_network_that_keeps_none) {
  for (uint64_t seed = 1; seed <= 5; ++seed) exchange({.faults = simulated::worse_than_efa(), .seed = seed}, 2, 20);
}

TEST(WireTransfers, of_three_ranks_use_all_rails) {
  simulated::FabricOptions options{.faults = simulated::worse_than_efa()};
  options.limits.rails = 3;
  options.limits.outstanding = 4;
  exchange(options, 3, 12);
}

TEST(WireTransfers, wait_for_credit_and_take_no_more_memory) {
  Ranks group(2);
  std::deque<Operation> sent;
  for (int i = 0; i < 100; ++i) {
    sent.push_back(Operation::send({0, 1, i, kUntagged}, 100));
    EXPECT_TRUE(group.lane(0).start(*sent.back().operation));
  }
  const auto ended = [&] {
    return std::ranges::count_if(sent, [](const Operation& each) { return each.operation->has_ended(); });
  };
  const auto catch_up = [&] {
    for (int rank = 0; rank < 2; ++rank) group.lane(rank).catch_up();
  };
  for (const Deadline come = Deadline::after(20s); ended() < 8 && !come.passed();) catch_up();
  for (int round = 0; round < 200; ++round) catch_up();
  // Eight payloads go ahead; the rest wait with their rank.
  EXPECT_EQ(ended(), 8);
  std::deque<Operation> received;
  for (int i = 0; i < 100; ++i) {
    received.push_back(Operation::receive({0, 1, i, kUntagged}, 100));
    EXPECT_TRUE(group.lane(1).start(*received.back().operation));
  }
  const Deadline deadline = Deadline::after(20s);
  while (!received.back().operation->has_ended() && !deadline.passed())
    for (int rank = 0; rank < 2; ++rank) group.lane(rank).catch_up();
  for (const Operation& each : received) EXPECT_TRUE(each.is_right()) << each.way.number;
}

TEST(WireTransfers, that_a_peer_cannot_have_sent_fail_that_peer) {
  Ranks group(2);
  const std::array<std::byte, 8> nothing{};
  EXPECT_FALSE(group.lane(1).network_failure_of(0));
  // More notices than the peer has room for. The place of each is free again once it is sent.
  for (int i = 0; i < 16; ++i) {
    ASSERT_TRUE(group.network(0).can_notify(1));
    group.network(0).notify(1, nothing, {});
    ASSERT_TRUE(group.endpoint(0).settle(Deadline::after(20s)));
  }
  EXPECT_FALSE(group.network(0).can_notify(1));
  group.network(0).notify(1, nothing, {});
  std::optional<Error> failure;
  for (const Deadline deadline = Deadline::after(20s); !failure && !deadline.passed();) {
    for (int rank = 0; rank < 2; ++rank) group.endpoint(rank).progress();
    failure = group.lane(1).network_failure_of(0);
  }
  ASSERT_TRUE(failure);
  EXPECT_NE(failure->message.find("it sent notice"), std::string::npos) << failure->message;
}

}  // namespace
}  // namespace fccl::core::testing
