// Tests of signatures: properties of collectives, descriptions, and when two calls match.
#include "base/signature.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <vector>

namespace fccl::core {
namespace {

TEST(Collective, reduces_if_it_takes_an_operator) {
  const std::set<int> reductions{fcclCollAllReduce, fcclCollReduce, fcclCollReduceScatter, fcclCollReduceScatterV};
  for (int c = -1; c <= fcclNumColls; ++c) EXPECT_EQ(is_reduction(static_cast<fcclColl_t>(c)), reductions.contains(c)) << c;
}

TEST(Collective, is_rooted_if_it_takes_a_root) {
  const std::set<int> rooted{fcclCollBroadcast, fcclCollReduce, fcclCollGather, fcclCollScatter};
  for (int c = -1; c <= fcclNumColls; ++c) EXPECT_EQ(is_rooted(static_cast<fcclColl_t>(c)), rooted.contains(c)) << c;
}

TEST(Collective, has_the_name_of_its_call) {
  EXPECT_STREQ(name_of(fcclCollAllReduce), "AllReduce");
  EXPECT_STREQ(name_of(fcclCollBroadcast), "Broadcast");
  EXPECT_STREQ(name_of(fcclCollReduce), "Reduce");
  EXPECT_STREQ(name_of(fcclCollAllGather), "AllGather");
  EXPECT_STREQ(name_of(fcclCollReduceScatter), "ReduceScatter");
  EXPECT_STREQ(name_of(fcclCollGather), "Gather");
  EXPECT_STREQ(name_of(fcclCollScatter), "Scatter");
  EXPECT_STREQ(name_of(fcclCollBarrier), "Barrier");
  EXPECT_STREQ(name_of(fcclCollAlltoAll), "AlltoAll");
  EXPECT_STREQ(name_of(fcclCollAllGatherV), "AllGatherV");
  EXPECT_STREQ(name_of(fcclCollReduceScatterV), "ReduceScatterV");
  EXPECT_STREQ(name_of(fcclCollAlltoAllV), "AlltoAllV");
  EXPECT_STREQ(name_of(fcclNumColls), "?");
}

TEST(Signature, counts_its_bytes_by_the_data_type) {
  EXPECT_EQ((Signature{.collective = fcclCollAllGather, .dtype = fcclBfloat16, .count = 7}.bytes()), 14u);
  EXPECT_EQ(Signature{}.bytes(), 0u);
}

TEST(Signature, reads_as_a_sentence) {
  EXPECT_EQ(describe({.collective = fcclCollAllGather, .dtype = fcclFloat32, .count = 1024}), "AllGather of 1024 float32");
  EXPECT_EQ(describe({.collective = fcclCollReduce, .dtype = fcclInt32, .op = ReduceOp::sum, .root = 2, .count = 3}),
            "Reduce(sum) of 3 int32 with root 2");
  EXPECT_EQ(describe({.collective = fcclCollReduceScatter, .dtype = fcclBfloat16, .op = ReduceOp::avg, .count = 5}),
            "ReduceScatter(avg) of 5 bfloat16");
  EXPECT_EQ(describe({.collective = fcclCollReduce, .dtype = fcclBfloat16, .root = 1, .count = 5, .widens = true}),
            "Reduce(sum) of 5 bfloat16 into float32 with root 1");
  EXPECT_EQ(describe({.collective = fcclCollAlltoAll, .dtype = fcclInt8, .count = 9}), "AlltoAll of 9 int8");
  EXPECT_EQ(describe({.collective = fcclCollAllGatherV, .dtype = fcclInt8, .count = 9, .counts = 0xab}),
            "AllGatherV of 9 int8 in all, recvcounts with hash ab");
  EXPECT_EQ(describe({.collective = fcclCollReduceScatterV, .dtype = fcclInt8, .op = ReduceOp::max, .count = 9, .counts = 1}),
            "ReduceScatterV(max) of 9 int8 in all, recvcounts with hash 1");
  EXPECT_EQ(describe({.collective = fcclCollAlltoAllV, .dtype = fcclFloat64}), "AlltoAllV of float64");
  EXPECT_EQ(describe({.collective = fcclCollBarrier}), "Barrier");
  EXPECT_EQ(describe({.collective = fcclCollAllGather, .count = 8, .issuer = Issuer::init}), "fcclCommInitRank");
  EXPECT_EQ(describe({.collective = fcclCollAllGather, .count = 8, .issuer = Issuer::split}), "fcclCommSplit");
  EXPECT_EQ(describe({.collective = fcclCollAllGather, .count = 8, .issuer = Issuer::grow}), "fcclCommGrow");
  EXPECT_EQ(describe({.collective = fcclCollAllGather, .count = 8, .issuer = Issuer::first_call}),
            "the set-up of the first call on CUDA memory");
}

TEST(Signature, comes_back_from_its_words) {
  const Signature s{.collective = fcclCollReduce, .dtype = fcclBool, .op = ReduceOp::max, .root = 3, .count = 1UL << 40};
  EXPECT_EQ(signature_of(words_of({.collective = fcclCollAllGatherV, .counts = 77})).counts, 77U);
  const SignatureWords words = words_of(s);
  const Signature back = signature_of(words);
  EXPECT_TRUE(name_a_call(words));
  EXPECT_EQ(words_of(back), words);
  EXPECT_EQ(describe(back), describe(s));
}

TEST(Signature, that_widens_is_another_one_and_comes_back_from_its_words) {
  for (const fcclDataType_t dtype : {fcclFloat16, fcclBfloat16, fcclFloat8e4m3, fcclFloat8e5m2}) {
    Signature s{.collective = fcclCollReduceScatter, .dtype = dtype, .count = 3};
    const SignatureWords plain = words_of(s);
    s.widens = true;
    const SignatureWords words = words_of(s);
    EXPECT_NE(words, plain);
    EXPECT_TRUE(name_a_call(words));
    EXPECT_EQ(words_of(signature_of(words)), words);
    EXPECT_EQ(describe(signature_of(words)), describe(s));
    EXPECT_NE(hash_of(s, 1), hash_of(signature_of(plain), 1));
  }
}

TEST(Signature, of_a_sub_call_shows_the_whole_call) {
  const Signature part{.collective = fcclCollGather, .dtype = fcclInt8, .root = 65535, .count = 10, .elsewhere = 90, .part = 3};
  const Signature back = signature_of(words_of(part));
  EXPECT_EQ(describe(part), "Gather of 100 int8 with root 65535");
  EXPECT_EQ(describe(back), describe(part));
  EXPECT_EQ(back.part, 3U);
  EXPECT_EQ(signature_of(words_of({.collective = fcclCollBarrier})).root, -1);
}

TEST(Signature, of_words_that_name_nothing_names_nothing) {
  const SignatureWords any{~uint64_t{0}, 1};
  EXPECT_FALSE(name_a_call(any));
  EXPECT_EQ(signature_of(any).collective, fcclNumColls);
  EXPECT_EQ(signature_of(any).dtype, fcclNumTypes);
  for (const int bits : {0xff, 0xff00, 0xff0000}) EXPECT_FALSE(name_a_call({static_cast<uint64_t>(bits), 1})) << bits;
}

constexpr Signature kCall{.collective = fcclCollReduce, .dtype = fcclFloat32, .op = ReduceOp::sum, .root = 1, .count = 100};

TEST(Hash, is_equal_for_equal_calls) {
  const Signature same = kCall;
  EXPECT_EQ(hash_of(kCall, 7), hash_of(same, 7));
}

TEST(Hash, differs_where_one_argument_differs) {
  Signature collective = kCall, dtype = kCall, op = kCall, root = kCall, count = kCall, part = kCall, elsewhere = kCall,
            counts = kCall;
  collective.collective = fcclCollAllReduce;
  dtype.dtype = fcclInt32;
  op.op = ReduceOp::max;
  root.root = 0;
  count.count = 101;
  counts.counts = 1;
  part.part = 1;
  elsewhere.elsewhere = 50;
  std::set<uint32_t> hashes{hash_of(kCall, 7), hash_of(kCall, 8)};
  for (const Signature& changed : {collective, dtype, op, root, count, part, elsewhere, counts})
    hashes.insert(hash_of(changed, 7));
  EXPECT_EQ(hashes.size(), 10u);
}

TEST(HashOfCounts, differs_where_one_count_differs_or_two_change_places) {
  std::set<uint64_t> hashes;
  for (const std::vector<size_t>& counts : {std::vector<size_t>{}, {0}, {0, 0}, {1, 2, 3}, {2, 1, 3}, {1, 2, 4}, {6, 0, 0}})
    hashes.insert(hash_of(std::span(counts)));
  EXPECT_EQ(hashes.size(), 7U);
}

TEST(Hash, differs_between_nearby_calls_and_numbers) {
  std::set<uint32_t> hashes;
  int calls = 0;
  for (uint32_t number = 0; number < 10; ++number) {
    for (int root = -1; root < 10; ++root) {
      for (size_t count : {size_t{0}, size_t{1}, size_t{2}, size_t{1} << 20, size_t{1} << 32, size_t{1} << 40}) {
        Signature call = kCall;
        call.root = root;
        call.count = count;
        hashes.insert(hash_of(call, number));
        ++calls;
      }
    }
  }
  EXPECT_EQ(hashes.size(), static_cast<size_t>(calls)) << "660 of 2^32 values collide once in twenty thousand trials";
}

}  // namespace
}  // namespace fccl::core
