// Tests of how the C interface reports errors, and of the structures that it fills.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <thread>

#include "c_api/handle.h"
#include "c_api/structure.h"
#include "own_ranks.h"

namespace fccl::core {
namespace {

TEST(ErrorStrings, differ_for_all_codes) {
  std::set<std::string> texts;
  for (int code = 0; code < fcclNumResults; ++code) texts.insert(fcclGetErrorString(static_cast<fcclResult_t>(code)));
  EXPECT_EQ(texts.size(), fcclNumResults);
}

TEST(ErrorStrings, of_a_value_that_is_no_code_say_so) {
  EXPECT_STREQ(fcclGetErrorString(fcclNumResults), "unknown result code");
  EXPECT_STREQ(fcclGetErrorString(static_cast<fcclResult_t>(-1)), "unknown result code");
}

TEST(LastError, begins_with_the_function_that_failed_and_ends_with_the_code) {
  EXPECT_EQ(fcclGetVersion(nullptr), fcclInvalidArgument);
  EXPECT_STREQ(fcclGetLastError(nullptr), "fcclGetVersion: version is NULL [FCCL-4000]");
}

TEST(LastError, of_an_earlier_operation_has_its_own_text_and_code_alone) {
  EXPECT_EQ(report("", Error{MessageKind::late_for_call, "AllGather waited"}), fcclTimeout);
  EXPECT_STREQ(fcclGetLastError(nullptr), "AllGather waited [FCCL-8001]");
}

TEST(LastError, outlives_a_call_that_succeeds) {
  expect_refused(fcclGetVersion(nullptr), "version is NULL");
  int version = 0;
  EXPECT_EQ(fcclGetVersion(&version), fcclSuccess);
  EXPECT_EQ(version, FCCL_VERSION_CODE);
  EXPECT_STREQ(fcclGetLastError(nullptr), "fcclGetVersion: version is NULL [FCCL-4000]");
}

TEST(LastError, belongs_to_the_thread_of_the_call) {
  expect_refused(fcclGetVersion(nullptr), "version is NULL");
  std::thread([] { EXPECT_STREQ(fcclGetLastError(nullptr), ""); }).join();
}

TEST(RefusedInAGroup, ends_it_with_the_first_refusal_and_leaves_none_open) {
  ASSERT_EQ(fcclGroupStart(), fcclSuccess);
  expect_refused(fcclAllGather(nullptr, nullptr, 1, fcclInt8, nullptr, nullptr), "comm is NULL");
  expect_refused(fcclGetVersion(nullptr), "version is NULL");
  expect_refused(fcclGroupEnd(),
                 "a call of the group was refused, so none was issued: fcclAllGather: comm is NULL [FCCL-4000]");
  expect_refused(fcclGroupEnd(), "no group of this thread is open", fcclInvalidUsage);
}

TEST(RefusedInAGroup, is_forgotten_by_the_next_group) {
  ASSERT_EQ(fcclGroupStart(), fcclSuccess);
  expect_refused(fcclGetVersion(nullptr), "version is NULL");
  EXPECT_EQ(fcclGroupEnd(), fcclInvalidArgument);
  ASSERT_EQ(fcclGroupStart(), fcclSuccess);
  EXPECT_EQ(fcclGroupEnd(), fcclSuccess) << fcclGetLastError(nullptr);
}

TEST(SimulatedGroup, without_an_initialised_structure_ends_all_the_same) {
  ASSERT_EQ(fcclGroupStart(), fcclSuccess);
  fcclSimInfo_t info{};
  expect_refused(fcclGroupSimulateEnd(&info), "start from FCCL_SIM_INFO_INITIALIZER. The group has ended");
  expect_refused(fcclGroupEnd(), "no group of this thread is open", fcclInvalidUsage);
}

struct Told {
  size_t size;
  uint64_t first;
  uint64_t second;
};

TEST(Structure, of_a_program_that_knows_less_is_filled_no_further) {
  Told asked{sizeof(size_t) + sizeof(uint64_t), 0, 77};
  EXPECT_EQ(give("test", Told{0, 1, 2}, &asked), fcclSuccess);
  EXPECT_EQ(asked.first, 1U);
  EXPECT_EQ(asked.second, 77U);
  EXPECT_EQ(asked.size, sizeof(size_t) + sizeof(uint64_t));
}

TEST(Structure, of_a_program_that_knows_more_says_how_much_was_filled) {
  Told asked{sizeof(Told) + 8, 0, 0};
  EXPECT_EQ(give("test", Told{0, 1, 2}, &asked), fcclSuccess);
  EXPECT_EQ(asked.second, 2U);
  EXPECT_EQ(asked.size, sizeof(Told));
}

TEST(Structure, whose_size_was_not_set_is_refused_and_left_alone) {
  Told asked{0, 7, 7};
  expect_refused(give("test", Told{0, 1, 2}, &asked), "size is 0: set it to the size of the structure before the call");
  EXPECT_EQ(asked.first, 7U);
}

}  // namespace
}  // namespace fccl::core
