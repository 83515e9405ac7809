// Tests of communicators that a thread makes, or fails to make, while their user goes on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <thread>

#include "c_api/derive.h"
#include "c_api/handle.h"
#include "own_ranks.h"

namespace fccl::core {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

// Makes nothing until the handle is unwanted.
Result<std::unique_ptr<Communicator>> make_until_cancelled(const CancelCheck& cancel_check) {
  while (true) {
    if (const auto wanted = cancel_check(); !wanted) return fail(wanted.error());
    std::this_thread::sleep_for(1ms);
  }
}

class MakingTest : public ::testing::Test {
 public:
  ~MakingTest() override { fcclCommDestroy(handle); }

 protected:
  void begin_to_make(PendingCommunicator::Make make) { handle = begin_making(std::move(make)).value(); }
  void await_end() const {
    while (handle->pending->state() == fcclInProgress) std::this_thread::sleep_for(1ms);
  }

  fcclComm_t handle = nullptr;
};

TEST_F(MakingTest, refuses_questions_until_it_has_ended_and_says_what_to_ask) {
  begin_to_make(make_until_cancelled);
  int ranks = 0;
  expect_refused(fcclCommCount(handle, &ranks), "ask fcclCommGetAsyncError until it does not say fcclInProgress any more",
                 fcclInvalidUsage);
}

TEST_F(MakingTest, is_in_progress_without_a_failure_until_it_has_ended) {
  begin_to_make(make_until_cancelled);
  fcclResult_t state = fcclSuccess;
  EXPECT_EQ(fcclCommGetAsyncError(handle, &state), fcclSuccess);
  EXPECT_EQ(state, fcclInProgress);
  EXPECT_STREQ(fcclGetLastError(handle), "");
}

TEST_F(MakingTest, that_fails_tells_its_code_and_cause) {
  begin_to_make([](const CancelCheck&) { return fail(fcclRemoteError, "rank 3 died"); });
  await_end();
  fcclResult_t state = fcclSuccess;
  EXPECT_EQ(fcclCommGetAsyncError(handle, &state), fcclSuccess);
  EXPECT_EQ(state, fcclRemoteError);
  EXPECT_STREQ(fcclGetLastError(handle), "rank 3 died [FCCL-6000]");
}

TEST_F(MakingTest, that_failed_gives_its_failure_to_every_call) {
  begin_to_make([](const CancelCheck&) { return fail(fcclRemoteError, "rank 3 died"); });
  await_end();
  expect_refused(fcclCommFinalize(handle), "rank 3 died", fcclRemoteError);
  expect_refused(fcclAllGather(nullptr, nullptr, 0, fcclInt8, handle, nullptr), "rank 3 died", fcclRemoteError);
}

TEST_F(MakingTest, ends_when_the_handle_is_finalized) {
  begin_to_make(make_until_cancelled);
  expect_refused(fcclCommFinalize(handle), "the communicator was ended while it was being made", fcclAborted);
}

TEST_F(MakingTest, has_ended_when_the_handle_is_destroyed) {
  std::atomic<bool> has_ended{false};
  begin_to_make([&](const CancelCheck& cancel_check) {
    auto made = make_until_cancelled(cancel_check);
    has_ended = true;
    return made;
  });
  EXPECT_EQ(fcclCommDestroy(std::exchange(handle, nullptr)), fcclSuccess);
  EXPECT_TRUE(has_ended);
}

using Derivation = OwnRanks;

TEST_F(Derivation, in_the_background_lends_the_parent_until_it_has_ended) {
  fcclComm_t made = nullptr;
  std::promise<void> go_on;
  const auto goes_on = go_on.get_future().share();
  const auto waits_and_fails = [&](Communicator&, const CancelCheck&) -> Result<std::unique_ptr<Communicator>> {
    goes_on.wait();
    return fail(fcclTimeout, "nobody came");
  };
  ASSERT_EQ(derive("test", comm(), &made, waits_and_fails, false), fcclInProgress);
  EXPECT_TRUE(comm()->loans.any());
  go_on.set_value();
  while (made->pending->state() == fcclInProgress) std::this_thread::sleep_for(1ms);
  EXPECT_FALSE(comm()->loans.any());
  EXPECT_STREQ(fcclGetLastError(made), "nobody came [FCCL-8000]");
  fcclCommDestroy(made);
}

TEST_F(Derivation, that_fails_at_once_names_the_function_and_leaves_no_handle) {
  fcclComm_t made = nullptr;
  const auto fails = [](Communicator&, const CancelCheck&) { return fail(fcclTimeout, "nobody came"); };
  expect_refused(derive("fcclCommSplit", comm(), &made, fails, true), "fcclCommSplit: nobody came", fcclTimeout);
  EXPECT_EQ(made, nullptr);
}

TEST_F(Derivation, without_a_communicator_for_this_rank_gives_no_handle) {
  fcclComm_t made = nullptr;
  const auto makes_none = [](Communicator&, const CancelCheck&) { return Result<std::unique_ptr<Communicator>>{nullptr}; };
  EXPECT_EQ(derive("test", comm(), &made, makes_none, true), fcclSuccess);
  EXPECT_EQ(made, nullptr);
}

TEST_F(Derivation, in_a_group_waits_for_its_end) {
  fcclComm_t made = nullptr;
  bool has_begun = false;
  const auto makes_none = [&](Communicator&, const CancelCheck&) {
    has_begun = true;
    return Result<std::unique_ptr<Communicator>>{nullptr};
  };
  ASSERT_EQ(fcclGroupStart(), fcclSuccess);
  EXPECT_EQ(derive("test", comm(), &made, makes_none, true), fcclSuccess);
  EXPECT_FALSE(has_begun);
  EXPECT_EQ(fcclGroupEnd(), fcclSuccess);
  EXPECT_TRUE(has_begun);
}

}  // namespace
}  // namespace fccl::core
