// Tests fccl.hpp as a program that links the library sees it: ranks are threads of this process.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <fccl/fccl.hpp>
#include <functional>
#include <future>
#include <span>
#include <thread>
#include <vector>

namespace {

using fccl::Communicator;

static_assert(fccl::Datatype<std::int8_t>::value == fcclInt8 && fccl::Datatype<std::uint16_t>::value == fcclUint16);
static_assert(fccl::Datatype<long>::value == fcclInt64 && fccl::Datatype<unsigned long long>::value == fcclUint64);
static_assert(fccl::Datatype<bool>::value == fcclBool && fccl::Datatype<std::byte>::value == fcclUint8);
static_assert(fccl::Datatype<fccl::Bfloat16>::value == fcclBfloat16 && fccl::Datatype<fccl::Float16>::value == fcclFloat16);
static_assert(std::is_constructible_v<fccl::Source, const std::vector<float>&>);
static_assert(std::is_constructible_v<fccl::Target, std::span<double>>);
static_assert(!std::is_constructible_v<fccl::Target, const std::vector<float>&>, "a target is written");
static_assert(!std::is_constructible_v<fccl::Source, std::vector<std::string>&>, "strings are no elements");
static_assert(!std::is_copy_constructible_v<Communicator> && std::is_move_assignable_v<Communicator>);
static_assert(!std::is_copy_constructible_v<fccl::Stream> && !std::is_copy_constructible_v<fccl::PreMulSum>);

// Runs `body` as every rank of one communicator.
void as_ranks(int ranks, const std::function<void(Communicator&)>& body) {
  const auto id = fccl::unique_id();
  ASSERT_TRUE(id) << id.error().message;
  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(ranks));
  std::atomic<int> joined = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      auto communicator = Communicator::join(*id, rank, ranks, {.memory = fcclMemoryCpu, .name = "interface"});
      ASSERT_TRUE(communicator) << communicator.error().message;
      ++joined;
      body(*communicator);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(joined, ranks);
}

TEST(Interface, RangesOfElementsAreSummed) {
  as_ranks(2, [](Communicator& communicator) {
    const std::vector<float> values{1.0f + static_cast<float>(communicator.rank()), 10.0f};
    std::array<float, 2> sums{};
    const auto done = communicator.all_reduce(values, sums, fccl::sum);
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_EQ(sums, (std::array<float, 2>{3.0f, 20.0f}));
  });
}

TEST(Interface, EveryCollectiveMovesItsBlocks) {
  as_ranks(3, [](Communicator& communicator) {
    const int rank = communicator.rank();
    const std::vector<int> own{rank, rank + 10};
    std::vector<int> all(6, -1), back(2, -1), copied(2, -1);
    ASSERT_TRUE(communicator.all_gather(own, all));
    EXPECT_EQ(all, (std::vector<int>{0, 10, 1, 11, 2, 12}));
    ASSERT_TRUE(communicator.reduce_scatter(all, back, fccl::max));
    EXPECT_EQ(back, own);
    ASSERT_TRUE(communicator.broadcast(own, copied, 1));
    EXPECT_EQ(copied, (std::vector<int>{1, 11}));
    std::vector<int> at_root(rank == 2 ? 6 : 0, -1);
    ASSERT_TRUE(communicator.gather(own, at_root, 2));
    if (rank == 2) {
      EXPECT_EQ(at_root, all);
    }
    std::fill(back.begin(), back.end(), -1);
    ASSERT_TRUE(communicator.scatter(at_root, back, 2));
    EXPECT_EQ(back, own);
    std::vector<int> sum(rank == 1 ? 2 : 0, -1);
    ASSERT_TRUE(communicator.reduce(own, sum, fccl::sum, 1));
    if (rank == 1) {
      EXPECT_EQ(sum, (std::vector<int>{3, 33}));
    }
    std::vector<int> turned(3, -1);
    ASSERT_TRUE(communicator.all_to_all(std::vector<int>{10 * rank, 10 * rank + 1, 10 * rank + 2}, turned));
    EXPECT_EQ(turned, (std::vector<int>{rank, 10 + rank, 20 + rank}));
    ASSERT_TRUE(communicator.barrier());
  });
}

// 256 and a half, of which bfloat16 would keep 256.
TEST(Interface, ReductionsIntoAnotherTypeAreNotRounded) {
  as_ranks(2, [](Communicator& communicator) {
    const std::array<std::uint16_t, 2> bits{0x4380, 0x3f00};
    const std::vector<std::uint16_t> own(4, bits[static_cast<std::size_t>(communicator.rank())]);
    const fccl::Source send{own.data(), 4, fcclBfloat16};
    std::vector<float> all(4), mine(2), at_root(4);
    ASSERT_TRUE(communicator.all_reduce_typed(send, all, fccl::sum));
    EXPECT_EQ(all, std::vector<float>(4, 256.5f));
    ASSERT_TRUE(communicator.reduce_scatter_typed(send, mine, fccl::avg));
    EXPECT_EQ(mine, std::vector<float>(2, 128.25f));
    const fccl::Target none{nullptr, 0, fcclFloat32};
    ASSERT_TRUE(communicator.reduce_typed(send, communicator.rank() == 1 ? fccl::Target(at_root) : none, fccl::sum, 1));
    EXPECT_EQ(at_root[0], communicator.rank() == 1 ? 256.5f : 0);
    const auto refused = communicator.all_reduce_typed(send, mine, fccl::sum);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().message,
              "all_reduce_typed: recv has 2 x float32, send has 4 x bfloat16; recv must have 1 times the elements of send "
              "[FCCL-4000]");
  });
}

// Rank r gives r + 1 elements, which are all r.
TEST(Interface, CollectivesOfUnevenCountsMoveTheirBlocks) {
  as_ranks(2, [](Communicator& communicator) {
    const auto rank = static_cast<std::size_t>(communicator.rank());
    const std::array<std::size_t, 2> counts{1, 2}, turned{2, 0};
    const std::vector<int> own(counts[rank], communicator.rank());
    std::vector<int> all(3, -1), part(counts[rank], -1);
    ASSERT_TRUE(communicator.all_gather_v(own, all, counts));
    EXPECT_EQ(all, (std::vector<int>{0, 1, 1}));
    ASSERT_TRUE(communicator.all_gather_v(own, all, counts, turned));
    EXPECT_EQ(all, (std::vector<int>{1, 1, 0}));
    ASSERT_TRUE(communicator.reduce_scatter_v(std::vector<int>{5, 6, 7}, part, counts, fccl::sum));
    EXPECT_EQ(part, rank == 0 ? (std::vector<int>{10}) : (std::vector<int>{12, 14}));
    // To each rank as many as its number and one.
    std::vector<int> got(2 * counts[rank], -1);
    const std::array<std::size_t, 2> equal{counts[rank], counts[rank]};
    ASSERT_TRUE(communicator.all_to_all_v({{std::vector<int>(3, communicator.rank())}, counts}, {{got}, equal}));
    EXPECT_EQ(got, rank == 0 ? (std::vector<int>{0, 1}) : (std::vector<int>{0, 0, 1, 1}));
  });
}

TEST(Interface, BlocksThatABufferDoesNotHoldAreRefusedWithBothSizes) {
  as_ranks(2, [](Communicator& communicator) {
    const std::array<std::size_t, 2> counts{2, 2}, far{0, 4};
    std::vector<float> own(2), all(5);
    const auto said = [](const fccl::Result<void>& refused) { return refused ? "" : refused.error().message; };
    EXPECT_EQ(said(communicator.all_gather_v(own, all, counts, far)),
              "all_gather_v: recv has 5 x float32, but block 1 is 2 at 4 [FCCL-4000]");
    EXPECT_EQ(said(communicator.all_gather_v(own, all, std::span(counts).first(1))),
              "all_gather_v: recv has 1 counts for 2 ranks [FCCL-4000]");
    EXPECT_EQ(said(communicator.reduce_scatter_v(all, std::span(own).first(1), counts, fccl::sum)),
              "reduce_scatter_v: recv has 1 x float32, but the count of rank " + std::to_string(communicator.rank()) +
                  " is 2 [FCCL-4000]");
    std::vector<int> other(4);
    EXPECT_EQ(said(communicator.all_gather_v(own, other, counts)),
              "all_gather_v: send has float32, recv has int32; both must have one datatype [FCCL-4000]");
    EXPECT_TRUE(communicator.barrier());
  });
}

TEST(Interface, CollectivesOfUnevenCountsRunOnAStreamAndHaveReadTheirCounts) {
  as_ranks(2, [](Communicator& communicator) {
    auto stream = fccl::Stream::create();
    ASSERT_TRUE(stream) << stream.error().message;
    const auto rank = static_cast<std::size_t>(communicator.rank());
    std::array<std::size_t, 2> counts{2, 1};
    const std::vector<int> own(counts[rank], communicator.rank() + 5);
    std::vector<int> all(3, -1);
    ASSERT_TRUE(communicator.all_gather_v(own, all, counts, {}, *stream));
    counts = {9, 9};
    const auto done = stream->synchronize();
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_EQ(all, (std::vector<int>{5, 5, 6}));
  });
}

TEST(Interface, OneRankSendsAndAnotherReceives) {
  as_ranks(2, [](Communicator& communicator) {
    std::vector<float> got(3, -1.0f);
    if (communicator.rank() == 0) {
      ASSERT_TRUE(communicator.send(std::vector<float>{1, 2, 3}, 1));
    } else {
      const auto done = communicator.receive(got, 0);
      ASSERT_TRUE(done) << done.error().message;
      EXPECT_EQ(got, (std::vector<float>{1, 2, 3}));
    }
  });
}

// The message with tag 4 is sent first and received last.
TEST(Interface, AReceiveWithATagTakesWhatHasItAndTellsWhoseItWas) {
  as_ranks(2, [](Communicator& communicator) {
    if (communicator.rank() == 1) {
      ASSERT_TRUE(communicator.send_tagged(std::vector<int>{40}, 0, 4));
      ASSERT_TRUE(communicator.send_tagged(std::vector<int>{50}, 0, 5));
      return;
    }
    std::vector<int> got(1, -1);
    auto source = communicator.receive_tagged(got, std::nullopt, 5);
    ASSERT_TRUE(source) << source.error().message;
    EXPECT_EQ(*source, 1);
    EXPECT_EQ(got[0], 50);
    auto stream = fccl::Stream::create();
    ASSERT_TRUE(stream) << stream.error().message;
    int later = -1;
    ASSERT_TRUE(communicator.receive_tagged(got, 1, 4, &later, *stream));
    ASSERT_TRUE(stream->synchronize());
    EXPECT_EQ(later, 1);
    EXPECT_EQ(got[0], 40);
  });
}

// Far more than goes along with a notice: outside of a group each of the two would wait for the other's receive.
TEST(Interface, AGroupLetsTwoRanksSendBeforeEitherReceives) {
  as_ranks(2, [](Communicator& communicator) {
    const int other = 1 - communicator.rank();
    const std::vector<int> own(1 << 20, communicator.rank() + 7);
    std::vector<int> got(own.size(), -1);
    const auto done = fccl::group([&] {
      EXPECT_TRUE(communicator.send(own, other));
      EXPECT_TRUE(communicator.receive(got, other));
    });
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_EQ(got, std::vector<int>(own.size(), other + 7));
  });
}

TEST(Interface, OneThreadHoldsAllRanksOfACommunicatorAndCallsThemInAGroup) {
  auto ranks = Communicator::of_one_process(3);
  ASSERT_TRUE(ranks) << ranks.error().message;
  std::vector<std::vector<int>> values{{0, 1}, {1, 1}, {2, 1}};
  const auto done = fccl::group([&] {
    for (Communicator& each : *ranks) {
      auto& own = values[static_cast<std::size_t>(each.rank())];
      EXPECT_TRUE(each.all_reduce(own, own, fccl::sum));
    }
  });
  ASSERT_TRUE(done) << done.error().message;
  for (const auto& sum : values) EXPECT_EQ(sum, (std::vector<int>{3, 3}));
}

TEST(Interface, AGroupThatACallFailsInIssuesNothingAndLeavesNoneOpen) {
  as_ranks(2, [](Communicator& communicator) {
    std::vector<int> values(2, communicator.rank());
    const auto refused = fccl::group([&] {
      EXPECT_TRUE(communicator.all_reduce(values, values, fccl::sum));
      EXPECT_FALSE(communicator.send(values, 2));
    });
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, fcclInvalidArgument);
    EXPECT_EQ(values, std::vector<int>(2, communicator.rank()));
    ASSERT_TRUE(communicator.all_reduce(values, values, fccl::sum));
    EXPECT_EQ(values, std::vector<int>(2, 1));
  });
}

TEST(Interface, ASizeThatDoesNotFitIsRefusedWithBothSizesAndDoesNoHarm) {
  as_ranks(2, [](Communicator& communicator) {
    std::vector<float> send(4, 1.0f), recv(7);
    const auto refused = communicator.all_gather(send, recv);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, fcclInvalidArgument);
    EXPECT_EQ(refused.error().message,
              "all_gather: recv has 7 x float32, send has 4 x float32; recv must have 2 times the elements of send, one block "
              "per rank [FCCL-4000]");
    recv.resize(8);
    EXPECT_TRUE(communicator.all_gather(send, recv));
    EXPECT_EQ(recv, std::vector<float>(8, 1.0f));
  });
}

TEST(Interface, DatatypesThatDifferAreRefused) {
  as_ranks(1, [](Communicator& communicator) {
    std::vector<float> send(4);
    std::vector<int> recv(4);
    const auto refused = communicator.all_reduce(send, recv, fccl::sum);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().message,
              "all_reduce: recv has 4 x int32, send has 4 x float32; both must have one datatype [FCCL-4000]");
  });
}

TEST(Interface, ANullPointerIsRefusedWithAReasonAndDoesNoHarm) {
  as_ranks(2, [](Communicator& communicator) {
    std::vector<float> values(4, 2.0f);
    const auto refused = communicator.all_reduce({nullptr, 4, fcclFloat32}, values, fccl::sum);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, fcclInvalidArgument);
    EXPECT_FALSE(refused.error().message.empty());
    EXPECT_TRUE(communicator.async_error());
    ASSERT_TRUE(communicator.all_reduce(values, values, fccl::sum));
    EXPECT_EQ(values, std::vector<float>(4, 4.0f));
  });
}

TEST(Interface, APreMultipliedSumTakesEachRanksOwnFactor) {
  as_ranks(2, [](Communicator& communicator) {
    const auto op = communicator.pre_multiplied_sum(communicator.rank() == 0 ? 0.5 : 2.0);
    ASSERT_TRUE(op) << op.error().message;
    std::vector<double> values(3, 8.0);
    ASSERT_TRUE(communicator.all_reduce(values, values, *op));
    EXPECT_EQ(values, std::vector<double>(3, 20.0));
  });
}

TEST(Interface, AnOperatorMayOutliveItsCommunicator) {
  as_ranks(1, [](Communicator& communicator) {
    const auto op = communicator.pre_multiplied_sum(1.0f);
    ASSERT_TRUE(op) << op.error().message;
    ASSERT_TRUE(communicator.abort());
    EXPECT_EQ(communicator.handle(), nullptr);
    EXPECT_FALSE(communicator.barrier());
  });
}

TEST(Interface, WorkOnAStreamIsDoneInOrderWhenItIsSynchronized) {
  as_ranks(2, [](Communicator& communicator) {
    auto stream = fccl::Stream::create();
    ASSERT_TRUE(stream) << stream.error().message;
    std::vector<std::int64_t> values(1000, communicator.rank() + 1);
    std::int64_t seen = 0;
    ASSERT_TRUE(communicator.all_reduce(values, values, fccl::sum, *stream));
    ASSERT_TRUE(communicator.all_reduce(values, values, fccl::sum, *stream));
    ASSERT_TRUE(stream->launch([&] { seen = values.back(); }));
    const auto finished = stream->synchronize();
    ASSERT_TRUE(finished) << finished.error().message;
    EXPECT_EQ(seen, 6);
    const auto done = stream->done();
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_TRUE(*done);
  });
}

TEST(Interface, SplitGivesRanksOfOneColorACommunicatorAndOthersNone) {
  as_ranks(3, [](Communicator& communicator) {
    const int rank = communicator.rank();
    auto part = communicator.split(rank == 0 ? std::nullopt : std::optional(7), -rank);
    ASSERT_TRUE(part) << part.error().message;
    ASSERT_EQ(part->has_value(), rank != 0);
    if (rank == 0) return;
    EXPECT_EQ((*part)->ranks(), 2);
    EXPECT_EQ((*part)->rank(), rank == 2 ? 0 : 1);
    std::vector<int> sum{rank};
    ASSERT_TRUE((*part)->all_reduce(sum, sum, fccl::sum));
    EXPECT_EQ(sum[0], 3);
  });
}

TEST(Interface, ShrinkGivesThoseThatGoOnACommunicatorAndNobodyIsDead) {
  as_ranks(3, [](Communicator& communicator) {
    const int rank = communicator.rank();
    const auto dead = communicator.dead_ranks();
    ASSERT_TRUE(dead) << dead.error().message;
    EXPECT_TRUE(dead->empty());
    if (rank == 1) return;
    auto rest = communicator.shrink({1});
    ASSERT_TRUE(rest) << rest.error().message;
    EXPECT_EQ(rest->ranks(), 2);
    EXPECT_EQ(rest->rank(), rank == 2 ? 1 : 0);
    std::vector<int> sum{rank + 1};
    ASSERT_TRUE(rest->all_reduce(sum, sum, fccl::sum));
    EXPECT_EQ(sum[0], 4);
  });
}

TEST(Interface, GrowTakesInANewRankByTheIdOfInvite) {
  std::promise<fccl::UniqueId> id;
  const auto expect_three = [](fccl::Result<Communicator> grown, int rank) {
    ASSERT_TRUE(grown) << grown.error().message;
    EXPECT_EQ(std::pair(grown->rank(), grown->ranks()), std::pair(rank, 3));
    std::vector<int> sum{rank + 1};
    ASSERT_TRUE(grown->all_reduce(sum, sum, fccl::sum));
    EXPECT_EQ(sum[0], 6);
  };
  std::jthread newcomer([&] { expect_three(Communicator::join_grown(id.get_future().get(), 2, 3), 2); });
  as_ranks(2, [&](Communicator& communicator) {
    if (communicator.rank() == 0) id.set_value(*communicator.invite());
    expect_three(communicator.grow(3), communicator.rank());
  });
}

TEST(Interface, RanksOfOneHostAreThereWithoutRails) {
  as_ranks(3, [](Communicator& communicator) {
    const auto hosts = communicator.hosts();
    ASSERT_TRUE(hosts) << hosts.error().message;
    EXPECT_EQ(hosts->hosts, 1);
    EXPECT_EQ(hosts->mostRanks, 3);
    EXPECT_EQ(hosts->fewestRanks, 3);
    EXPECT_EQ(hosts->rails, 0);
  });
}

TEST(Interface, CountersCountWhatThisCommunicatorHasDone) {
  as_ranks(2, [](Communicator& communicator) {
    std::vector<float> send(4), recv(8);
    ASSERT_TRUE(communicator.all_gather(send, recv));
    const auto counter = communicator.counter(fcclCollAllGather);
    ASSERT_TRUE(counter) << counter.error().message;
    EXPECT_EQ(counter->calls, 1u);
    EXPECT_EQ(counter->bytes, 32u);
  });
}

TEST(InterfaceDeathTest, ReadingTheValueOfAFailureEndsTheProgramWithTheReason) {
  const fccl::Result<int> failed = fccl::Error{fcclSystemError, "no descriptors left"};
  EXPECT_DEATH(static_cast<void>(*failed), "no descriptors left");
}

}  // namespace
