// Naive consumers: those who believe more than the contract says are right on a kind fabric, and caught on a worse one.
#include <algorithm>
#include <functional>

#include "transports/fabric_processes.h"

namespace fccl::core {

namespace {

using Kind = Completion::Kind;

constexpr int kSeeds = 100;
constexpr size_t kBlock = 301;
constexpr int kConsumer = 2;
constexpr uint32_t kRounds = 4;

// Two producers write blocks to a consumer, which looks at them when it believes them to be there.
class NaiveTest : public FabricProcesses {
 protected:
  // Returns true if the consumer saw the right bytes.
  using Consumer = std::function<bool()>;

  bool on(const simulated::FabricOptions& options, const Consumer& consumer) {
    memory_bytes = at(0, kRounds);
    start_over(options, 3);
    return consumer();
  }

  // Under how many seeds a consumer sees what was not there yet.
  int seeds_that_catch(const Consumer& consumer) {
    int caught = 0;
    for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
      caught += on({.faults = simulated::worse_than_efa(), .seed = seed}, consumer) ? 0 : 1;
    }
    return caught;
  }

  void expect_caught(const Consumer& consumer) {
    EXPECT_TRUE(on({}, consumer)) << "wrong on a kind fabric too";
    const int caught = seeds_that_catch(consumer);
    EXPECT_GT(caught, kSeeds / 10);
    RecordProperty("caught", caught);
  }

  // The block of a producer for a round.
  static size_t at(int producer, uint32_t round) { return (round * 2 + static_cast<size_t>(producer)) * kBlock; }
  static uint32_t immediate(int producer, uint32_t round) { return round * 2 + static_cast<uint32_t>(producer); }
  void produce(int producer, uint32_t round) {
    const Way way{.from = producer, .to = kConsumer};
    fill(producer, at(producer, round), kBlock, round);
    expect_copy(producer, at(producer, round), kBlock, kConsumer, at(producer, round));
    post(way, write(way, at(producer, round), kBlock, at(producer, round), immediate(producer, round)));
  }
  bool is_there(int producer, uint32_t round) {
    return std::ranges::equal(actual(kConsumer, at(producer, round), kBlock), expected(kConsumer, at(producer, round), kBlock));
  }
  // Does `work`; looks at the first block of each of so many producers when `cue` is found.
  bool looks_at(int producers, const std::function<void()>& work, const std::function<bool(const Finding&)>& cue) {
    bool looked = false;
    bool right = true;
    on_found = [&](int number, const Finding& finding) {
      if (number != kConsumer || looked || !cue(finding)) return;
      looked = true;
      for (int producer = 0; producer < producers; ++producer) right = right && is_there(producer, 0);
    };
    work();
    drive_until([&] { return looked; });
    on_found = {};
    return right;
  }
};

TEST_F(NaiveTest, one_that_waits_for_each_arrival_is_always_right) {
  const Consumer consumer = [this] {
    uint32_t arrived = 0;
    bool right = true;
    on_found = [&](int number, const Finding& finding) {
      if (number != kConsumer || finding.kind != Kind::arrived) return;
      ++arrived;
      right = right && is_there(static_cast<int>(finding.immediate % 2), finding.immediate / 2);
    };
    for (uint32_t round = 0; round < kRounds; ++round) {
      for (const int producer : {0, 1}) produce(producer, round);
    }
    drive_until([&] { return arrived == 2 * kRounds; });
    on_found = {};
    return right;
  };
  EXPECT_TRUE(on({}, consumer));
  EXPECT_EQ(seeds_that_catch(consumer), 0);
}

TEST_F(NaiveTest, one_that_takes_a_later_write_for_the_arrival_of_an_earlier_one_is_caught) {
  expect_caught([this] {
    const auto work = [this] {
      produce(0, 0);
      const Way way{.from = 0, .to = kConsumer};
      post(way, write(way, 0, 0, 0, 99));
    };
    return looks_at(1, work, [](const Finding& finding) { return finding.immediate == 99; });
  });
}

TEST_F(NaiveTest, one_that_takes_a_message_for_the_arrival_of_an_earlier_write_is_caught) {
  expect_caught([this] {
    const auto work = [this] {
      produce(0, 0);
      const Way way{.from = 0, .to = kConsumer};
      post(way, message(way, 0, 1));
    };
    return looks_at(1, work, [](const Finding& finding) { return finding.kind == Kind::message; });
  });
}

TEST_F(NaiveTest, one_that_counts_arrivals_without_asking_whose_they_are_is_caught) {
  expect_caught([this] {
    const auto work = [this] {
      for (uint32_t round = 0; round < kRounds; ++round) {
        for (const int producer : {0, 1}) produce(producer, round);
        drive(1);
      }
    };
    return looks_at(2, work, [arrived = 0](const Finding&) mutable { return ++arrived == 2; });
  });
}

TEST_F(NaiveTest, one_that_watches_the_last_byte_of_a_block_is_caught) {
  expect_caught([this] {
    const size_t last = at(0, 0) + kBlock - 1;
    const std::byte before = actual(kConsumer, last, 1)[0];
    produce(0, 0);
    if (actual(0, last, 1)[0] == before) return true;
    drive_until([&] { return actual(kConsumer, last, 1)[0] != before; });
    return is_there(0, 0);
  });
}

TEST_F(NaiveTest, one_that_takes_the_end_of_a_write_for_its_arrival_is_caught) {
  expect_caught([this] {
    produce(0, 0);
    bool arrived_before = false;
    bool asked = false;
    on_found = [&](int number, const Finding& finding) {
      if (number == 0 && finding.kind == Kind::ended && !asked) {
        asked = true;
        arrived_before = count(kConsumer, Kind::arrived) == 1;
      }
    };
    drive_until([&] { return asked; });
    on_found = {};
    return arrived_before;
  });
}

}  // namespace

}  // namespace fccl::core
