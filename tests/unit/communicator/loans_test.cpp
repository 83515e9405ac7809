// Tests of the loans of a communicator.
#include "communicator/loans.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>

namespace fccl::core {
namespace {

using namespace std::chrono_literals;

TEST(LoansTest, are_any_until_the_last_is_given_back) {
  Loans loans;
  loans.take();
  loans.take();
  loans.give_back();
  EXPECT_TRUE(loans.any());
  loans.give_back();
  EXPECT_FALSE(loans.any());
}

TEST(LoansTest, keep_their_owner_until_the_last_is_given_back) {
  auto* const loans = new Loans;
  loans->take();
  auto destroyed = std::async(std::launch::async, [loans] { delete loans; });
  EXPECT_EQ(destroyed.wait_for(20ms), std::future_status::timeout);
  loans->give_back();
  EXPECT_EQ(destroyed.wait_for(10s), std::future_status::ready);
}

}  // namespace
}  // namespace fccl::core
