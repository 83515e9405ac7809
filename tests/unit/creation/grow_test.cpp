// Tests of how the ranks of a communicator agree on the id by which it grows.
#include "creation/grow.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ranks_of_one_process.h"

namespace fccl::core {
namespace {

using ::testing::HasSubstr;

UniqueId id_at(const char* address) { return {.root = address_from(address).value(), .generation = 1}; }

class GrowTest : public ::testing::Test {
 protected:
  static constexpr int kRanks = 3;
  struct Proposed {
    int ranks = 5;
    std::optional<UniqueId> id{};
  };

  // Each rank learns this.
  std::vector<Result<UniqueId>> agree(const std::vector<Proposed>& proposed) {
    std::vector<Result<UniqueId>> learned(kRanks);
    run_as_ranks(kRanks, [&](int rank) {
      Grow grow(parent.control(rank), kRanks, [&](const Call& call) { return parent.exchange(rank, call); }, {});
      learned[rank] = grow.agree(proposed[rank].ranks, proposed[rank].id);
    });
    return learned;
  }
  void expect_refused(const std::vector<Proposed>& proposed, const std::vector<std::string>& words) {
    for (const auto& each : agree(proposed)) {
      ASSERT_FALSE(each);
      EXPECT_EQ(each.error().code, fcclInvalidUsage);
      for (const std::string& word : words) EXPECT_THAT(each.error().message, HasSubstr(word));
    }
  }

  Parent parent{kRanks};
  const UniqueId one = id_at("10.0.0.1:1"), other = id_at("10.0.0.2:1");
};

TEST_F(GrowTest, gives_every_rank_the_id_that_one_knows) {
  for (const auto& each : agree({{}, {}, {5, one}})) {
    ASSERT_TRUE(each) << each.error().message;
    EXPECT_EQ(*each, one);
  }
}

TEST_F(GrowTest, takes_an_id_that_several_know) {
  for (const auto& each : agree({{5, one}, {}, {5, one}})) EXPECT_EQ(each.value(), one);
}

TEST_F(GrowTest, by_two_ids_names_the_ranks_that_know_them) {
  expect_refused({{}, {5, one}, {5, other}}, {"rank 1 (pid", "and rank 2 (pid", "have different unique ids"});
}

TEST_F(GrowTest, without_an_id_says_who_makes_one) {
  expect_refused({{}, {}, {}}, {"none of the 3 ranks has a unique id", "fcclCommGetUniqueId"});
}

TEST_F(GrowTest, to_other_numbers_of_ranks_shows_both) {
  expect_refused({{5, one}, {6, one}, {5, one}}, {"rank 0 (pid", "gives nRanks = 5, rank 1 (pid", "gives 6"});
}

TEST_F(GrowTest, whose_exchange_fails_fails_with_that) {
  Grow grow(parent.control(0), kRanks, [](const Call&) { return Result<void>{fail(fcclTimeout, "nobody came")}; }, {});
  const auto agreed = grow.agree(5, one);
  ASSERT_FALSE(agreed);
  EXPECT_EQ(agreed.error().message, "nobody came");
}

TEST_F(GrowTest, exchanges_by_a_call_that_no_user_s_call_matches) {
  std::optional<Issuer> issuer;
  Grow grow(parent.control(0), kRanks,
            [&](const Call& call) {
              issuer = call.signature.issuer;
              return Result<void>{fail(fcclTimeout, "")};
            },
            {});
  (void)grow.agree(5, one);
  EXPECT_EQ(issuer, Issuer::grow);
}

}  // namespace
}  // namespace fccl::core
