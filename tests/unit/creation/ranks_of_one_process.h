// Ranks that are threads of this process: their controls, the calls by which they exchange bytes, and their making.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <barrier>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "bootstrap/bootstrap.h"
#include "creation/creation.h"
#include "health/control.h"
#include "operations/communicator_state.h"
#include "topology/columns.h"

namespace fccl::core {

// Runs `body` as every rank, each on a thread of its own.
inline void run_as_ranks(int ranks, const std::function<void(int rank)>& body) {
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < ranks; ++rank) threads.emplace_back(body, rank);
}

// A parent communicator as Split and Grow see it: a control per rank, and an AllGather that involves no lane.
class Parent {
 public:
  explicit Parent(int ranks) : barrier_(ranks), given_(static_cast<size_t>(ranks)) {
    const SegmentShape shape{ranks, 64, 64};
    segment_ = *Segment::map(*Segment::make(shape), shape);
    segment_->initialise(static_cast<uint32_t>(kFirstNumber));
    for (int rank = 0; rank < ranks; ++rank) controls_.push_back(std::make_unique<Control>("", rank, peers(ranks), segment_));
  }

  Control& control(int rank) { return *controls_[static_cast<size_t>(rank)]; }
  // Collective.
  Result<void> exchange(int rank, const Call& call) {
    const size_t bytes = call.signature.bytes();
    given_[static_cast<size_t>(rank)].assign(static_cast<const char*>(call.send), bytes);
    barrier_.arrive_and_wait();
    auto* to = static_cast<char*>(call.recv);
    for (const std::string& each : given_) {
      std::memcpy(to, each.data(), bytes);
      to += bytes;
    }
    barrier_.arrive_and_wait();
    return {};
  }

 private:
  static std::vector<Peer> peers(int ranks) {
    std::vector<Peer> all;
    for (int rank = 0; rank < ranks; ++rank)
      all.push_back({{rank, ::getpid(), {}, "here", {}, {}}, *ProcessWatch::of(::getpid()), rank});
    return all;
  }

  std::barrier<> barrier_;
  std::vector<std::string> given_;
  std::shared_ptr<Segment> segment_;
  std::vector<std::unique_ptr<Control>> controls_;
};

// Makes the state of every rank, and hands each to `use` on the thread of its rank.
inline void make_states(int ranks, const CreateOptions& options, const std::function<void(CommunicatorState& state)>& use) {
  const UniqueId id = open_bootstrap(options.settings).value();
  run_as_ranks(ranks, [&](int rank) {
    const auto made = create_state(join_request(id, rank, ranks, options), options);
    ASSERT_TRUE(made) << made.error().message;
    use(**made);
  });
}

}  // namespace fccl::core
