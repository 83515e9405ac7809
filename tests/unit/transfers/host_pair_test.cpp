// Both ends of a pair of ranks, moved on by hand: what there is room for, what stays until it is released, and how far slices
// go.
#include "transfers/host_pair.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <vector>

namespace fccl::core {
namespace {

constexpr size_t kEagerBytes = 256;

class HostPairTest : public ::testing::Test {
 protected:
  HostPairTest() {
    const SegmentShape shape{2, kEagerBytes, 1024};
    segment = *Segment::map(*Segment::make(shape), shape);
    segment->initialise(1);
    sender = std::make_unique<HostPair>(segment, 0, 1);
    receiver = std::make_unique<HostPair>(segment, 1, 0);
  }

  static std::vector<std::byte> bytes_of(size_t bytes, int seed) {
    std::vector<std::byte> made(bytes);
    for (size_t i = 0; i < bytes; ++i) made[i] = static_cast<std::byte>(static_cast<size_t>(seed) * 31 + i % 251);
    return made;
  }
  bool post_eager(const std::vector<std::byte>& payload) {
    return sender->post_eager({.dtype = fcclUint8, .count = payload.size()}, payload.data(), payload.size());
  }

  std::shared_ptr<Segment> segment;
  std::unique_ptr<HostPair> sender, receiver;
};

TEST_F(HostPairTest, posts_a_payload_only_if_it_is_no_longer_than_an_eager_one) {
  EXPECT_FALSE(post_eager(bytes_of(sender->eager_bytes() + 1, 1)));
  EXPECT_FALSE(receiver->next());
  EXPECT_TRUE(post_eager(bytes_of(sender->eager_bytes(), 1)));
  EXPECT_TRUE(receiver->next());
}

TEST_F(HostPairTest, has_room_for_another_payload_once_one_is_released) {
  for (int slot = 0; slot < TransferBoard::kEagerSlots; ++slot) ASSERT_TRUE(post_eager(bytes_of(1, slot)));
  EXPECT_FALSE(post_eager(bytes_of(1, 9)));
  EXPECT_TRUE(sender->can_post());
  receiver->release(receiver->next()->notice);
  receiver->take();
  EXPECT_TRUE(post_eager(bytes_of(1, 9)));
}

TEST_F(HostPairTest, has_room_for_another_notice_once_one_is_taken) {
  for (uint64_t number = 0; number < TransferBoard::kNotices; ++number) {
    ASSERT_TRUE(sender->can_post());
    sender->post({.kind = Notice::kGrant, .transfer = number}, nullptr);
  }
  EXPECT_FALSE(sender->can_post());
  EXPECT_FALSE(post_eager(bytes_of(1, 1)));
  receiver->take();
  EXPECT_TRUE(sender->can_post());
}

TEST_F(HostPairTest, keeps_a_payload_while_later_notices_take_its_place) {
  for (const size_t bytes : {sizeof NoticeLine::beside, kEagerBytes}) {
    const std::vector<std::byte> payload = bytes_of(bytes, 3);
    ASSERT_TRUE(post_eager(payload));
    const auto next = receiver->next();
    ASSERT_TRUE(next);
    std::vector<std::byte> room;
    const std::byte* const kept = receiver->keep(*next, room);
    receiver->take();
    for (uint64_t number = 0; number < TransferBoard::kNotices; ++number) {
      sender->post({.kind = Notice::kOffer, .transfer = number}, &number);
      receiver->take();
    }
    EXPECT_EQ(std::vector(kept, kept + bytes), payload);
    receiver->release(next->notice);
  }
}

TEST_F(HostPairTest, tells_with_an_offer_where_its_bytes_may_be_read) {
  const int lent = 7;
  sender->post({.kind = Notice::kOffer}, &lent);
  const void* told = nullptr;
  copy_bytes(static_cast<void*>(&told), receiver->next()->payload, sizeof told);
  EXPECT_EQ(told, &lent);
}

TEST_F(HostPairTest, sends_no_more_slices_than_the_ring_holds_or_the_turn_allows) {
  const size_t slice = segment->shape().transfer_slot_bytes();
  const std::vector<std::byte> source = bytes_of(5 * slice - 1, 5);
  EXPECT_EQ(sender->send(source.data(), source.size(), 1, copy_bytes).slices, 1);
  const TransferPair::Moved second = sender->send(source.data() + slice, source.size() - slice, 4, copy_bytes);
  EXPECT_EQ(second.slices, 1);
  EXPECT_EQ(second.bytes, slice);
  EXPECT_EQ(sender->send(source.data() + 2 * slice, source.size() - 2 * slice, 4, copy_bytes).slices, 0);
}

TEST_F(HostPairTest, receives_all_slices_of_a_message_whole_and_the_last_one_shorter) {
  const size_t slice = segment->shape().transfer_slot_bytes();
  const std::vector<std::byte> source = bytes_of(5 * slice - 1, 6);
  std::vector<std::byte> target(source.size());
  size_t sent = 0, received = 0;
  for (int turn = 0; turn < 5; ++turn) {
    sent += sender->send(source.data() + sent, source.size() - sent, 4, copy_bytes).bytes;
    received += receiver->receive(target.data() + received, target.size() - received, 4, copy_bytes).bytes;
  }
  EXPECT_EQ(received, source.size());
  EXPECT_EQ(target, source);
  EXPECT_EQ(receiver->receive(target.data(), slice, 4, copy_bytes).slices, 0);
}

}  // namespace
}  // namespace fccl::core
