// Questions of waiting ranks over a simulated network: whom the error of a wait names, and what of a peer is believed.
#include "operations/wait_questions.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "base/transfer.h"
#include "health/call_numbers.h"
#include "health/control.h"
#include "health/wait.h"
#include "host/task.h"
#include "segment/lane_board.h"
#include "segment/rank_state.h"
#include "transports/fabric.h"
#include "wire/bent_transport.h"
#include "wire/endpoint.h"
#include "wire/introduction.h"
#include "wire/lane.h"
#include "wire/link.h"
#include "wire/notice_lane.h"

namespace fccl::core::testing {
namespace {

using namespace std::chrono_literals;

constexpr auto kTimeout = 800ms;

// The ranks of a communicator, with as many on each host as `ranks_of_hosts` says. Their processes answer by themselves, unless
// they are stopped.
class Waiters {
 public:
  explicit Waiters(const std::vector<int>& ranks_of_hosts)
      : stopped_(static_cast<size_t>(std::accumulate(ranks_of_hosts.begin(), ranks_of_hosts.end(), 0))) {
    std::vector<int> host_of, local_of;
    for (size_t host = 0; host < ranks_of_hosts.size(); ++host)
      for (int local = 0; local < ranks_of_hosts[host]; ++local) {
        host_of.push_back(static_cast<int>(host));
        local_of.push_back(local);
      }
    for (const int ranks : ranks_of_hosts) {
      const SegmentShape shape{ranks, 64, 64, count()};
      segments_.push_back(*Segment::map(*Segment::make(shape), shape));
      segments_.back()->initialise(static_cast<uint32_t>(kFirstNumber));
    }
    for (int rank = 0; rank < count(); ++rank) {
      std::vector<Peer> peers;
      for (int other = 0; other < count(); ++other) {
        const bool is_here = host_of[other] == host_of[rank];
        peers.push_back({{other, getpid(), {}, "host" + std::to_string(host_of[other]), {}, {}},
                         is_here ? *ProcessWatch::of(getpid()) : nullptr,
                         is_here ? local_of[other] : -1});
      }
      controls_.push_back(std::make_unique<Control>("", rank, std::move(peers), segments_[host_of[rank]]));
      open(rank);
    }
    std::vector<Introduction> introductions;
    for (const auto& lane : lanes_) introductions.push_back(lane->wire().introduction());
    for (int rank = 0; rank < count(); ++rank) {
      EXPECT_TRUE(lane(rank).connect(introductions));
      control(rank).judge.ask_by(std::make_unique<WaitQuestions>(*endpoints_[rank], lane(rank), control(rank)));
    }
  }

  int count() const { return static_cast<int>(stopped_.size()); }
  Control& control(int rank) { return *controls_[rank]; }
  Endpoint& endpoint(int rank) { return *endpoints_[rank]; }
  WireLane& lane(int rank) { return lanes_[rank]->wire(); }
  void stop(int rank) { stopped_[rank] = true; }

  // Enters a call of the gather lane.
  void enter(int rank, const Task& task) {
    control(rank)
        .peers.segment()
        .board(control(rank).peers[rank].local, kGatherLane)
        .boxes[0]
        .record.write({task.number, task.call.signature, {}});
  }
  // Has each rank wait for the other one of its pair on a thread of its own, and returns the errors by the order of pairs.
  std::vector<Error> wait(const std::vector<std::pair<int, int>>& pairs, const Task& task) {
    std::vector<Error> errors(pairs.size());
    std::vector<std::thread> threads;
    for (size_t i = 0; i < pairs.size(); ++i)
      threads.emplace_back([&, i] { errors[i] = wait_for(pairs[i].first, pairs[i].second, task); });
    for (std::thread& thread : threads) thread.join();
    return errors;
  }
  Error wait_for(int rank, int awaited, const Task& task) {
    const std::atomic<uint64_t> never{0};
    Wait wait{task, kTimeout};
    for (;; std::this_thread::sleep_for(1ms))
      if (auto looked = control(rank).judge.look(wait, {&never, 1, awaited}); !looked) return looked.error();
  }

 private:
  void open(int rank) {
    std::vector<int> all(stopped_.size());
    std::iota(all.begin(), all.end(), 0);
    auto transport = std::make_unique<BentTransport>(fabric_.open());
    transport->sleeps = &stopped_[rank];
    endpoints_.push_back(std::make_unique<Endpoint>(std::move(transport)));
    auto lane = NoticeLane::open(*endpoints_.back(), {.ranks = all,
                                                      .me = rank,
                                                      .window = 4,
                                                      .slot_bytes = 1024,
                                                      .stages = 3,
                                                      .payload_bytes = 2048,
                                                      .first_sequence = 0xfffffff8,
                                                      .token = 1000 + static_cast<uint64_t>(rank),
                                                      .notices = 16,
                                                      .notices_out = 4});
    EXPECT_TRUE(lane) << lane.error().message;
    lanes_.push_back(std::move(*lane));
  }

  simulated::Fabric fabric_;
  std::vector<std::atomic<bool>> stopped_;  // by rank
  std::vector<std::shared_ptr<Segment>> segments_;
  std::vector<std::unique_ptr<Control>> controls_;
  std::vector<std::unique_ptr<Endpoint>> endpoints_;
  std::vector<std::unique_ptr<NoticeLane>> lanes_;
};

class WaitQuestionsTest : public ::testing::Test {
 protected:
  static void expect_words(const std::string& text, const std::vector<std::string>& words) {
    for (const std::string& word : words) EXPECT_NE(text.find(word), std::string::npos) << "no \"" << word << "\": " << text;
  }

  const Task before{{{fcclCollBarrier, fcclInt8, ReduceOp::sum, -1, 0}}, kFirstNumber + 6};
  const Task task{{{fcclCollAllGather, fcclInt8, ReduceOp::sum, -1, 4096}}, kFirstNumber + 7};
};

TEST_F(WaitQuestionsTest, name_the_rank_at_the_end_of_a_line_that_does_not_answer) {
  Waiters waiters({1, 1, 1, 1});
  waiters.stop(0);
  for (const Error& error : waiters.wait({{3, 2}, {2, 1}, {1, 0}}, task)) {
    EXPECT_EQ(error.code, fcclTimeout);
    expect_words(error.message, {"rank 0 (pid", "which does not answer,"});
  }
}

TEST_F(WaitQuestionsTest, name_a_rank_that_is_late_and_its_last_call) {
  Waiters waiters({1, 1, 1});
  waiters.enter(0, before);
  for (const Error& error : waiters.wait({{2, 1}, {1, 0}}, task)) {
    expect_words(error.message, {"rank 0 (pid", "the last call of rank 0 is Barrier (call 6)"});
    EXPECT_EQ(error.message.find("does not answer"), std::string::npos) << error.message;
  }
}

// Ranks 0 and 1 share a host, on which rank 1 waits for rank 0.
TEST_F(WaitQuestionsTest, name_a_rank_for_which_only_its_own_host_waits) {
  Waiters waiters({2, 1});
  waiters.enter(0, before);
  std::thread of_host([&] { (void)waiters.wait_for(1, 0, task); });
  const Error error = waiters.wait_for(2, 1, task);
  of_host.join();
  expect_words(error.message, {"rank 0 (pid", "the last call of rank 0 is Barrier (call 6)"});
}

TEST_F(WaitQuestionsTest, name_a_circle_as_such) {
  Waiters waiters({1, 1, 1, 1});
  for (const Error& error : waiters.wait({{0, 1}, {1, 2}, {2, 3}, {3, 1}}, task))
    expect_words(error.message, {"in a circle of ranks that wait for each other"});
}

TEST_F(WaitQuestionsTest, bring_the_failure_of_a_rank_to_who_waits_for_it) {
  Waiters waiters({1, 1});
  std::thread fails([&] {
    std::this_thread::sleep_for(200ms);
    (void)waiters.control(1).failures.raise({MessageKind::aborted, "rank 1 aborted the communicator"});
  });
  const Error error = waiters.wait_for(0, 1, task);
  fails.join();
  EXPECT_EQ(error.message, "rank 1 aborted the communicator");
  EXPECT_EQ(error.code, fcclAborted);
}

// The judge takes what a rank says that cannot be, and the deadline names the awaited rank.
TEST_F(WaitQuestionsTest, believe_no_answer_that_cannot_be) {
  Waiters waiters({1, 1});
  waiters.stop(1);
  std::atomic<bool> ends{false};
  std::thread liar([&] {
    for (int i = 0; !ends; ++i, std::this_thread::sleep_for(1ms)) {
      constexpr std::array<int, 5> kRanks{-1, 2, 65535, 1 << 20, INT32_MIN};
      waiters.control(0).judge.hear(1, {.end = {kRanks[i % kRanks.size()], LineState::circle}, .call = {}, .failure = {}});
    }
  });
  const Error error = waiters.wait_for(0, 1, task);
  ends = true;
  liar.join();
  expect_words(error.message, {"rank 0 has waited", "for rank 1 (pid", "which does not answer,"});
}

// A peer sends bytes of which no rank makes a question or an answer.
TEST_F(WaitQuestionsTest, drop_what_makes_no_sense) {
  Waiters waiters({1, 1});
  Port& port = waiters.lane(1).port();
  const WireLink& link = waiters.lane(1).link(0);
  for (const size_t bytes : {0, 1, 39, 40, 41, 1500})
    for (const int value : {0, 2, 3, 255}) {
      EntryMessage entry;
      entry.channel = link.channel;
      entry.kind = EntryMessage::kAside;
      entry.token = link.token;
      std::byte* const message = port.memory.notice(0);
      std::memset(message, value, sizeof(entry) + bytes);
      std::memcpy(message, &entry, sizeof(entry));
      waiters.endpoint(1).in_turn([&] {
        EXPECT_TRUE(waiters.endpoint(1).post_at_once(port, {.kind = Operation::Kind::message,
                                                            .peer = link.rail[0].peer,
                                                            .memory = port.memory.outgoing_id(),
                                                            .local = message,
                                                            .bytes = sizeof(entry) + bytes,
                                                            .remote = {},
                                                            .tag = Port::note(0, port.end_of_notice(0))}));
      });
      EXPECT_TRUE(waiters.endpoint(1).settle(Deadline::after(20s)));
      std::this_thread::sleep_for(5ms);
    }
  EXPECT_FALSE(waiters.control(0).failures.has_failed());
  EXPECT_EQ(waiters.lane(0).failure_of(1), std::nullopt);
  EXPECT_EQ(waiters.wait_for(0, 1, task).code, fcclTimeout);
}

}  // namespace
}  // namespace fccl::core::testing
