// Tests of which failure is every rank's, and who is told of it.
#include "health/failure_board.h"

#include <sys/eventfd.h>

#include "segment/rank_state.h"
#include "unit/health/ranks_of_one_host.h"

namespace fccl::core {
namespace {

class FailureBoardTest : public RanksOfOneHost {};

TEST_F(FailureBoardTest, keeps_the_first_failure_whoever_raises_another) {
  EXPECT_EQ(controls[2]->failures.raise({MessageKind::late_for_call, "first"}).message, "first");
  EXPECT_EQ(controls[1]->failures.raise({fcclAborted, "second"}).message, "first");
  ASSERT_TRUE(controls[0]->failures.first());
  EXPECT_EQ(controls[0]->failures.first()->code, fcclTimeout);
  EXPECT_EQ(controls[0]->failures.first()->code.number(), 8001);
  EXPECT_EQ(controls[0]->failures.first()->message, "first");
}

TEST_F(FailureBoardTest, has_one_text_of_a_failure_that_is_too_long_to_share) {
  const Error raised = control->failures.raise({fcclTimeout, std::string(3000, 'x')});
  EXPECT_EQ(raised.message, controls[1]->failures.first()->message);
}

TEST_F(FailureBoardTest, a_failure_that_was_heard_is_this_hosts_first_one_and_wakes_no_leader) {
  Descriptor wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  const int woken = wake.get();
  control->failures.wake_by(std::move(wake));
  control->failures.hear_of({fcclTimeout, "rank 7 is late"});
  eventfd_t count = 0;
  EXPECT_EQ(::eventfd_read(woken, &count), -1);
  ASSERT_TRUE(controls[1]->failures.first());
  EXPECT_EQ(controls[1]->failures.first()->message, "rank 7 is late");
}

TEST_F(FailureBoardTest, a_failure_that_is_raised_wakes_the_leader) {
  Descriptor wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  const int woken = wake.get();
  control->failures.wake_by(std::move(wake));
  (void)control->failures.raise({fcclTimeout, "rank 1 is late"});
  eventfd_t count = 0;
  EXPECT_EQ(::eventfd_read(woken, &count), 0);
}

TEST_F(FailureBoardTest, reads_a_number_that_is_none_of_an_error_as_a_defect) {
  segment->state(0).cause.code = 999;
  segment->failure().first = 1;
  EXPECT_EQ(control->failures.first()->code, fcclInternalError);
}

TEST_F(FailureBoardTest, has_a_text_with_its_code_from_its_first_failure_on) {
  EXPECT_STREQ(controls[0]->failures.text(), "");
  (void)controls[1]->failures.raise({fcclTimeout, "rank 1 is late"});
  EXPECT_STREQ(controls[0]->failures.text(), "rank 1 is late [FCCL-8000]");
}

}  // namespace
}  // namespace fccl::core
