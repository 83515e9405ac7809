// Plans whose messages and values are right, and that the executor's cursors, landing or memory rule out all the same.
#include <gtest/gtest.h>

#include "plan/check.h"

namespace fccl::core::plan {
namespace {

using Members = std::vector<Steps>;

constexpr Slot data(int chunk) { return {Space::data, chunk}; }
constexpr Slot parts(int member) { return {Space::parts, member}; }
constexpr Step send(int peer, Slot here, Slot there, int after = 0) { return {Kind::send, peer, here, there, 1, after}; }
constexpr Step receive(int peer, Slot here, Slot there) { return {Kind::receive, peer, here, there}; }
// A chunk that has the same place at both ends.
constexpr Step send(int peer, int chunk, int after = 0) { return send(peer, data(chunk), data(chunk), after); }
constexpr Step receive(int peer, int chunk) { return receive(peer, data(chunk), data(chunk)); }
constexpr Step add(int chunk) { return {.kind = Kind::add, .here = data(chunk), .there = {}}; }

constexpr char kCircle[] = "steps wait for one another in a circle";

// The root hands out chunks, which the others exchange.
TEST(Executor, takes_in_any_order_what_does_not_wait_for_it) {
  const Members one_is_turned{{send(1, 1), send(2, 2), send(1, 0), send(2, 0)},
                              {receive(2, 2), receive(0, 1), send(2, 1, 2), receive(0, 0)},
                              {receive(0, 2), send(1, 2, 1), receive(1, 1), receive(0, 0)}};
  EXPECT_EQ(fault_of({fcclCollBroadcast, Cut::per_member, {3}}, one_is_turned), "");
}

TEST(Executor, never_ends_where_two_members_first_take_what_the_other_sends_on) {
  const Members both_are_turned{{send(1, 1), send(2, 2), send(1, 0), send(2, 0)},
                                {receive(2, 2), receive(0, 1), send(2, 1, 2), receive(0, 0)},
                                {receive(1, 1), receive(0, 2), send(1, 2, 2), receive(0, 0)}};
  EXPECT_EQ(fault_of({fcclCollBroadcast, Cut::per_member, {3}}, both_are_turned), kCircle);
}

// Around a ring of three: what has come is told before what was there, and sends keep to the order.
TEST(Executor, never_ends_where_a_send_that_waits_stands_before_what_others_wait_for) {
  Members forward_first, own_first;
  for (int m = 0; m < 3; ++m) {
    const int above = (m + 1) % 3, below = (m + 2) % 3;
    forward_first.push_back({receive(below, above), receive(below, below), send(above, below, 2), send(above, m)});
    own_first.push_back({send(above, m), receive(below, below), send(above, below, 2), receive(below, above)});
  }
  EXPECT_EQ(fault_of({fcclCollAllGather, Cut::per_member, {3}}, forward_first), kCircle);
  EXPECT_EQ(fault_of({fcclCollAllGather, Cut::per_member, {3}}, own_first), "");
}

// Member 0 takes what member 1 sends only when it has something of member 2, which waits for the third message of member 1.
TEST(Executor, never_ends_where_landing_is_too_short_for_what_stands_before_an_awaited_message) {
  const Members members{{receive(2, 2), receive(1, 0), receive(1, 1)},
                        {send(0, 0), send(0, 1), send(2, 2), send(2, 0), send(2, 1)},
                        {receive(1, 2), send(0, 2, 1), receive(1, 0), receive(1, 1)}};
  EXPECT_EQ(fault_of({fcclCollBroadcast, Cut::per_member, {3, 1}, 1}, members), kCircle);
  EXPECT_EQ(fault_of({fcclCollBroadcast, Cut::per_member, {3, 1}, 2}, members), "");
}

TEST(Executor, frees_the_landing_of_a_part_by_mistake_where_a_message_of_the_same_peer_comes_before_the_addition) {
  const Members members{{send(1, data(1), parts(0)), receive(1, parts(1), data(0)), receive(1, 1), add(0), send(1, 0, 4)},
                        {send(0, data(0), parts(1)), receive(0, parts(0), data(1)), add(1), send(0, 1, 3), receive(0, 0)}};
  EXPECT_EQ(fault_of({fcclCollAllReduce, Cut::per_member, {2}}, members),
            "member 0 takes a message of 1 before it has added the part that arrived earlier");
}

TEST(Executor, sends_one_stage_as_a_part_and_as_data_by_mistake) {
  const Members members{{receive(1, parts(1), data(0)), receive(2, parts(2), data(0)), add(0)},
                        {send(0, data(0), parts(1)), send(2, 0)},
                        {send(0, data(0), parts(2)), receive(1, 0)}};
  EXPECT_EQ(fault_of({fcclCollReduce, Cut::whole, {3}}, members), "member 1 sends one stage as a part and as data");
}

// A block of a Gather has memory where it is given and at the root, and a block of a Scatter likewise.
TEST(Executor, has_no_memory_for_blocks_that_are_passed_on) {
  const Members gather{{receive(1, 1), receive(1, 2)}, {send(0, 1), receive(2, 2), send(0, 2, 2)}, {send(1, 2)}};
  EXPECT_EQ(fault_of({fcclCollGather, Cut::per_member, {3}}, gather), "member 1, step 1: it has no memory for chunk 2");
  const Members scatter{{send(1, 1), send(1, 2)}, {receive(0, 1), receive(0, 2), send(2, 2, 2)}, {receive(1, 2)}};
  EXPECT_EQ(fault_of({fcclCollScatter, Cut::per_member, {3}}, scatter), "member 1, step 1: it has no memory for chunk 2");
}

}  // namespace
}  // namespace fccl::core::plan
