// OwnRanks: communicators of this process alone, whose calls the tests of the C interface get refused.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>

#include "fccl/fccl.h"

namespace fccl::core {

// Two ranks of one communicator. No test issues a call that a peer would have to join.
class OwnRanks : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    ASSERT_EQ(fcclCommInitAll(comms.data(), kRanks, nullptr), fcclSuccess) << fcclGetLastError(nullptr);
  }
  static void TearDownTestSuite() {
    for (fcclComm_t& comm : comms) {
      EXPECT_EQ(fcclCommDestroy(comm), fcclSuccess);
      comm = nullptr;
    }
  }

  static constexpr int kRanks = 2;
  static fcclComm_t comm() { return comms[1]; }

  inline static std::array<fcclComm_t, kRanks> comms{};
};

// Expects that a call was refused for an argument, and that the thread's last error says so in these words.
inline void expect_refused(fcclResult_t result, const std::string& words, fcclResult_t code = fcclInvalidArgument) {
  EXPECT_EQ(result, code);
  EXPECT_THAT(fcclGetLastError(nullptr), ::testing::HasSubstr(words));
}

}  // namespace fccl::core
