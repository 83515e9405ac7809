// A process that leaves at once after its last call: what it has sent arrives.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "loopback.h"
#include "system/clock.h"
#include "wire/bent_transport.h"
#include "wire/group.h"

namespace fccl::testing {
namespace {

using std::chrono::milliseconds;

// More than half a window of slots, so that credits are sent to who has left.
constexpr size_t kSlot = size_t{128} << 10;
constexpr size_t kBytes = 7 * kSlot;
// What a leaver may wait for peers that do not answer, and what it may take besides on a busy machine.
constexpr milliseconds kSettle{100};
constexpr milliseconds kLeave{2000};

// One of two processes, each with a lane over loopback.
class Member {
 public:
  Member(int me, int socket) : me_(me), socket_(socket) {
    auto opened = open_loopback(1, 2);
    if (!opened) throw std::runtime_error(opened.error().message);
    auto bent = std::make_unique<BentTransport>(std::move(opened->front()));
    bent->sleeps = &sleeps;
    endpoint_ = std::make_unique<Endpoint>(std::move(bent));
    lane_ = std::move(*WireLane::open(*endpoint_, {.ranks = {rank_of(0), rank_of(1)}, .me = me, .slot_bytes = kSlot}));
    std::array<Introduction, 2> all;
    all[static_cast<size_t>(me)] = lane_->introduction();
    tell(&all[static_cast<size_t>(me)], sizeof(Introduction));
    hear(&all[static_cast<size_t>(1 - me)], sizeof(Introduction));
    if (auto connected = lane_->connect(all); !connected) throw std::runtime_error(connected.error().message);
  }

  void tell(const void* bytes, size_t size) {
    if (::send(socket_, bytes, size, MSG_NOSIGNAL) != static_cast<ssize_t>(size)) throw std::runtime_error("cannot tell");
  }
  void hear(void* bytes, size_t size) {
    if (::recv(socket_, bytes, size, MSG_WAITALL) != static_cast<ssize_t>(size)) throw std::runtime_error("cannot hear");
  }
  void signal() { tell("", 1); }
  void await_signal() {
    char signal;
    hear(&signal, 1);
  }

  // A broadcast of member 0's bytes, up to its first wait.
  void begin(Bytes& bytes) {
    const Call call{{fcclCollBroadcast, fcclInt8, ReduceOp::sum, rank_of(0), bytes.size()}, bytes.data(), bytes.data(), {}};
    const int algorithm = algorithm_of(fcclCollBroadcast, "chain");
    WireTask task = flat_task(call, number_++, {2, 0}, me_, plan::Cut::whole);
    steps_ = plan::steps_of(algorithm, {2, 0}, me_);
    task.steps = &steps_;
    phase_.end();
    phase_ = wire_exchange(lane_->frame, *lane_, task);
    begun_done_ = phase_.resume();
  }
  // To the end; whether that went well.
  bool finish() {
    if (begun_done_) return true;
    const auto look = [](void* self, const Awaited& awaited) -> Result<void> {
      auto& member = *static_cast<Member*>(self);
      if (auto failure = member.lane_->failure_of(awaited.rank); failure && !awaited.reached())
        return fail(std::move(*failure));
      if (member.deadline_.passed()) return fail(fcclSystemError, "waited too long");
      return {};
    };
    const auto outcome = run_to_end(phase_, {look, this}, true, poll_of(*lane_));
    if (!outcome) std::fprintf(stderr, "member %d: %s\n", me_, outcome.error().message.c_str());
    return outcome.has_value() && outcome->agreed();
  }
  void leave() {
    endpoint_->await_taken(Deadline::after(kSettle));
    phase_.end();
    lane_.reset();
    endpoint_.reset();
  }

  std::atomic<bool> sleeps{false};

 private:
  int me_;
  int socket_;
  uint64_t number_ = 1;
  std::unique_ptr<Endpoint> endpoint_;
  std::unique_ptr<WireLane> lane_;
  plan::Steps steps_;
  Phase phase_;
  bool begun_done_ = false;
  Deadline deadline_ = Deadline::after(std::chrono::seconds(3));
};

// Member 0: sends, and is gone.
[[noreturn]] void send_and_leave(int socket) {
  int status = 1;
  try {
    Member member(0, socket);
    // Connects the rails, both ways.
    Bytes first = input_of(0, kBytes, 0);
    member.begin(first);
    const bool connected = member.finish();
    Bytes bytes = input_of(0, kBytes, 1);
    member.await_signal();
    member.begin(bytes);
    if (connected && member.finish()) {
      const auto begin = Clock::now();
      member.leave();
      status = Clock::now() - begin < kLeave ? 0 : 2;
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "member 0: %s\n", error.what());
  }
  ::_exit(status);
}

class Leaving : public ::testing::Test {
 protected:
  // `sleeps`: while it leaves the other one does not look at the network.
  void leave_while_the_other(bool sleeps) {
    std::array<int, 2> sockets{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, sockets.data()), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      ::close(sockets[0]);
      send_and_leave(sockets[1]);
    }
    ::close(sockets[1]);
    Member member(1, sockets[0]);
    Bytes first(kBytes, kPoison);
    member.begin(first);
    ASSERT_TRUE(member.finish());
    Bytes bytes(kBytes, kPoison);
    // Its entry goes.
    member.begin(bytes);
    member.sleeps = sleeps;
    member.signal();
    int status = -1;
    if (sleeps) ::waitpid(child, &status, 0);
    member.sleeps = false;
    EXPECT_TRUE(member.finish());
    EXPECT_TRUE(bytes == input_of(0, kBytes, 1)) << "bytes are lost";
    member.leave();
    if (!sleeps) ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    ::close(sockets[0]);
  }
};

TEST_F(Leaving, loses_nothing_for_a_peer_that_goes_on) {
  for (int i = 0; i < 20; ++i) ASSERT_NO_FATAL_FAILURE(leave_while_the_other(false));
}

TEST_F(Leaving, loses_nothing_for_a_peer_that_does_not_look_at_the_network_meanwhile) {
  for (int i = 0; i < 5; ++i) ASSERT_NO_FATAL_FAILURE(leave_while_the_other(true));
}

}  // namespace
}  // namespace fccl::testing
