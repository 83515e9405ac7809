// Tests of what the C interface refuses where communicators are made: before any peer hears of it.
#include <array>
#include <vector>

#include "c_api/handle.h"
#include "own_ranks.h"

namespace fccl::core {
namespace {

// NOLINTNEXTLINE(performance-no-int-to-ptr): no object has this address.
fcclComm_t poison() { return reinterpret_cast<fcclComm_t>(uintptr_t{8}); }

class CreationRefusal : public OwnRanks {
 protected:
  // Expects that no handle is left behind.
  void expect_shrink_refused(std::vector<int> ranks, const std::string& words, int flags = FCCL_SHRINK_DEFAULT) {
    fcclComm_t made = poison();
    expect_refused(fcclCommShrink(comm(), ranks.data(), static_cast<int>(ranks.size()), &made, nullptr, flags), words);
    EXPECT_EQ(made, nullptr);
  }
  void expect_grow_refused(int nranks, int rank, const std::string& words) {
    fcclComm_t made = poison();
    expect_refused(fcclCommGrow(comm(), nranks, nullptr, rank, &made, nullptr), words);
    EXPECT_EQ(made, nullptr);
  }
};

TEST_F(CreationRefusal, of_a_rank_out_of_range_leaves_no_handle) {
  fcclComm_t made = poison();
  expect_refused(fcclCommInitRank(&made, 2, {}, 2), "fcclCommInitRank: rank 2 of 2 ranks: give 0 <= rank < nranks");
  EXPECT_EQ(made, nullptr);
}

TEST_F(CreationRefusal, of_no_ids_says_how_many_were_given) {
  fcclComm_t made = nullptr;
  expect_refused(fcclCommInitRankScalable(&made, 1, 0, 0, nullptr, nullptr), "nId is 0, commIds NULL: give at least one id");
}

TEST_F(CreationRefusal, of_one_of_several_ids_says_which) {
  std::array<fcclUniqueId, 2> ids{};
  ASSERT_EQ(fcclGetUniqueId(ids.data()), fcclSuccess) << fcclGetLastError(nullptr);
  fcclComm_t made = nullptr;
  expect_refused(fcclCommInitRankScalable(&made, 1, 0, 2, ids.data(), nullptr), "commIds[1]: ");
}

TEST_F(CreationRefusal, of_no_ranks_at_all_says_the_number) {
  fcclComm_t made = nullptr;
  expect_refused(fcclCommInitAll(&made, 0, nullptr), "ndev is 0: give a number of ranks >= 1");
}

TEST_F(CreationRefusal, of_a_color_below_zero_that_is_not_nocolor) {
  fcclComm_t made = poison();
  expect_refused(fcclCommSplit(comm(), -2, 0, &made, nullptr), "color is -2: give a color >= 0 or FCCL_SPLIT_NOCOLOR");
  EXPECT_EQ(made, nullptr);
}

TEST_F(CreationRefusal, of_a_growth_that_adds_no_rank) {
  expect_grow_refused(kRanks, -1, "nRanks is 2: the communicator has 2 ranks, give more");
}

TEST_F(CreationRefusal, of_a_new_number_for_a_rank_that_there_is_already) {
  expect_grow_refused(kRanks + 1, 2, "rank is 2: a rank that there is already keeps its number, 1, and gives -1");
}

TEST_F(CreationRefusal, of_a_growth_by_nobody_and_nothing) {
  fcclComm_t made = poison();
  expect_refused(fcclCommGrow(nullptr, 3, nullptr, 2, &made, nullptr), "comm and uniqueId are NULL");
  EXPECT_EQ(made, nullptr);
}

TEST_F(CreationRefusal, of_excluding_a_rank_that_there_is_not) {
  expect_shrink_refused({0, 2}, "excludeRanksList[1] is 2: the communicator has ranks 0 to 1");
  expect_shrink_refused({-1}, "excludeRanksList[0] is -1");
}

TEST_F(CreationRefusal, of_excluding_the_calling_rank) {
  expect_shrink_refused({1}, "excludeRanksList[0] is 1, the calling rank itself");
}

TEST_F(CreationRefusal, of_excluding_a_rank_twice_says_both_places) {
  expect_shrink_refused({0, 0}, "excludeRanksList[1] is 0, as excludeRanksList[0] is");
}

TEST_F(CreationRefusal, of_a_list_that_is_missing) {
  fcclComm_t made = nullptr;
  expect_refused(fcclCommShrink(comm(), nullptr, 1, &made, nullptr, 0), "excludeRanksCount is 1, excludeRanksList NULL");
  int rank = 0;
  expect_refused(fcclCommShrink(comm(), &rank, -1, &made, nullptr, 0), "excludeRanksCount is -1, excludeRanksList set");
}

TEST_F(CreationRefusal, of_flags_of_a_shrink_that_there_are_not) {
  expect_shrink_refused({0}, "shrinkFlags is 2: give FCCL_SHRINK_DEFAULT or FCCL_SHRINK_ABORT", 2);
}

TEST_F(CreationRefusal, of_the_background_in_a_group_names_why) {
  fcclConfig_t config = FCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  fcclComm_t made = nullptr;
  ASSERT_EQ(fcclGroupStart(), fcclSuccess);
  expect_refused(fcclCommSplit(comm(), 0, 0, &made, &config), "config.blocking = 0 in a group");
  EXPECT_EQ(fcclGroupEnd(), fcclInvalidArgument);
  EXPECT_EQ(made, nullptr);
}

TEST_F(CreationRefusal, of_anything_while_another_communicator_is_made_of_this_one) {
  comm()->loans.take();
  fcclComm_t made = nullptr;
  expect_refused(fcclCommSplit(comm(), 0, 0, &made, nullptr), "a communicator is still being made of this one",
                 fcclInvalidUsage);
  expect_refused(fcclCommSetTimeout(comm(), 1000), "a communicator is still being made of this one", fcclInvalidUsage);
  comm()->loans.give_back();
  EXPECT_EQ(fcclCommSetTimeout(comm(), 600'000), fcclSuccess) << fcclGetLastError(nullptr);
}

// The config of a call that makes a communicator.
class ConfigRefusal : public ::testing::Test {
 protected:
  fcclConfig_t config = FCCL_CONFIG_INITIALIZER;

  void expect_config_refused(const std::string& words) {
    const auto options = options_of(&config, nullptr);
    ASSERT_FALSE(options);
    EXPECT_EQ(options.error().code, fcclInvalidArgument);
    EXPECT_THAT(options.error().message, ::testing::HasSubstr(words));
  }
};

TEST_F(ConfigRefusal, of_one_that_is_too_short_says_how_to_start) {
  config.size -= 1;
  expect_config_refused("start from FCCL_CONFIG_INITIALIZER");
}

TEST_F(ConfigRefusal, of_a_kind_of_memory_that_there_is_not) {
  config.memoryKind = fcclMemoryCuda + 1;
  expect_config_refused("config.memoryKind is ");
}

TEST_F(ConfigRefusal, of_a_timeout_names_the_field_and_its_value) {
  config.timeoutMs = 0;
  expect_config_refused("config.timeoutMs is 0: give milliseconds > 0");
}

TEST_F(ConfigRefusal, of_a_timeout_of_init_names_the_field_and_its_value) {
  config.initTimeoutMs = -5;
  expect_config_refused("config.initTimeoutMs is -5: give milliseconds > 0");
}

TEST_F(ConfigRefusal, is_not_for_values_that_are_left_out_which_are_the_parent_s) {
  CreateOptions parent;
  parent.settings.timeout = std::chrono::milliseconds{1234};
  config.initTimeoutMs = 77;
  const auto options = options_of(&config, &parent);
  ASSERT_TRUE(options) << options.error().message;
  EXPECT_EQ(options->settings.timeout, std::chrono::milliseconds{1234});
  EXPECT_EQ(options->settings.init_timeout, std::chrono::milliseconds{77});
}

TEST_F(ConfigRefusal, is_not_for_a_long_name_which_is_cut) {
  const std::string name(40, 'n');
  config.commName = name.c_str();
  config.memoryKind = fcclMemoryCpu;
  const auto options = options_of(&config, nullptr);
  ASSERT_TRUE(options) << options.error().message;
  EXPECT_EQ(options->name, std::string(31, 'n'));
}

}  // namespace
}  // namespace fccl::core
