// Fuzzes what peers write into the segment and a rank reads from there: records of calls, states, the failure.
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "fuzz/fuzz.h"
#include "health/call_numbers.h"
#include "health/control.h"
#include "health/wait.h"
#include "host/task.h"
#include "os/log.h"
#include "segment/rank_state.h"

namespace fccl::core::fuzz {
namespace {

using namespace std::chrono_literals;

constexpr SegmentShape kShape{2, 64, 64};

// Rank 0 of two ranks of this process; what lies before the payloads may be overwritten.
struct Rank {
  Rank() : segment(*Segment::map(*Segment::make(kShape), kShape)), control("", 0, peers(), segment) {
    set_log_level("off");
    segment->initialise(static_cast<uint32_t>(kFirstNumber));
    good.assign(begin(), size());
  }
  static std::vector<Peer> peers() {
    std::vector<Peer> both;
    for (int rank = 0; rank < 2; ++rank) {
      Member member;
      member.rank = rank;
      member.pid = getpid();
      member.host_name = "here";
      both.push_back({member, *ProcessWatch::of(member.pid), rank});
    }
    return both;
  }
  char* begin() const { return reinterpret_cast<char*>(&segment->failure()); }
  size_t size() const { return reinterpret_cast<char*>(segment->payload(0, kGatherLane, 0)) - begin(); }

  std::shared_ptr<Segment> segment;
  Control control;
  std::string good;
};

Rank& rank() {
  static auto* instance = new Rank;
  return *instance;
}

// Everything that a rank does with what a peer wrote, while it waits for that peer.
void look() {
  Control& control = rank().control;
  const Segment& segment = *rank().segment;
  (void)segment.state(1).get_processors();
  for (const LaneId lane : lanes_from(kGatherLane))
    for (const Box& box : segment.board(1, lane).boxes) {
      const CallRecord::Value value = box.record.read();
      check(describe(value.signature).size() < 200, "a call is described in a line");
      (void)value.signature.bytes();
      (void)hash_of(value.signature, static_cast<uint32_t>(value.number));
      (void)lane_of(value.signature.collective);
    }
  const Task task{{{fcclCollAllGather, fcclInt8, ReduceOp::sum, -1, 4096}}, kFirstNumber};
  Wait wait{task, 0ms};
  const Awaited awaited{&segment.board(1, kGatherLane).published.value, 1, 1};
  for (int i = 0; i < 2; ++i)
    if (const Result<void> looked = control.judge.look(wait, awaited); !looked)
      check(looked.error().message.size() < 4096, "an error is bounded");
  (void)control.failures.first();
  (void)control.failures.raise(control.calls.mismatch(task, 1));
}

}  // namespace

std::vector<std::string> seeds() {
  Rank& own = rank();
  std::memcpy(own.begin(), own.good.data(), own.size());
  CallRecord::Value value{kFirstNumber, {fcclCollReduce, fcclFloat32, ReduceOp::avg, 1, 1000}, {}};
  own.segment->board(1, kPairLane).boxes[0].record.write(value);
  const std::string called(own.begin(), own.size());
  std::memcpy(own.begin(), own.good.data(), own.size());
  Cause& cause = own.segment->state(1).cause;
  cause.code = fcclRemoteError;
  std::strcpy(cause.text.data(), "rank 0 died");
  own.segment->failure().first = 2;
  const std::string failed(own.begin(), own.size());
  cause.code = -1;
  const std::string failed_oddly(own.begin(), own.size());
  return {own.good, called, failed, failed_oddly, std::string(own.size(), '\xff')};
}

}  // namespace fccl::core::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fccl::core::fuzz::Rank& rank = fccl::core::fuzz::rank();
  std::memcpy(rank.begin(), rank.good.data(), rank.size());
  if (size > 0) std::memcpy(rank.begin(), data, std::min(size, rank.size()));
  fccl::core::fuzz::look();
  return 0;
}
