// Queues whose nodes stay their owners': what is found, and in which order.
#include "transfers/linked_queue.h"

#include <gtest/gtest.h>

#include <deque>

namespace fccl::core {
namespace {

struct Node {
  int name = 0;
  Node* next = nullptr;
  uint64_t key = 0;
};

const auto kAny = [](const Node&) { return true; };

TEST(KeyedQueue, finds_the_oldest_node_of_a_key) {
  KeyedQueue<Node> queue;
  Node first{1}, other{2}, second{3};
  queue.push(first, 7);
  queue.push(other, 8);
  queue.push(second, 7);
  EXPECT_EQ(queue.remove_if(7, kAny), &first);
  EXPECT_EQ(queue.remove_if(7, kAny), &second);
  EXPECT_EQ(queue.remove_if(7, kAny), nullptr);
  EXPECT_EQ(queue.remove_if(8, kAny), &other);
}

TEST(KeyedQueue, passes_over_nodes_for_which_the_condition_does_not_hold) {
  KeyedQueue<Node> queue;
  Node first{1}, second{2};
  queue.push(first, 5);
  queue.push(second, 5);
  EXPECT_EQ(queue.remove_if(5, [](const Node& each) { return each.name == 2; }), &second);
  EXPECT_EQ(queue.find_if(5, kAny), &first);
}

TEST(KeyedQueue, keeps_keys_apart_that_share_a_place) {
  KeyedQueue<Node> queue;
  Node low{1}, high{2};
  queue.push(low, 3);
  queue.push(high, 3 + (uint64_t{1} << 32));
  EXPECT_EQ(queue.remove_if(3 + (uint64_t{1} << 32), kAny), &high);
  EXPECT_EQ(queue.remove_if(3, kAny), &low);
}

TEST(KeyedQueue, keeps_the_order_of_each_key_while_it_grows) {
  KeyedQueue<Node> queue;
  std::deque<Node> nodes(1000);
  for (int i = 0; i < 1000; ++i) {
    nodes[static_cast<size_t>(i)].name = i;
    queue.push(nodes[static_cast<size_t>(i)], static_cast<uint64_t>(i % 10));
  }
  for (uint64_t key = 0; key < 10; ++key)
    for (int i = 0; i < 100; ++i) {
      const Node* found = queue.remove_if(key, kAny);
      ASSERT_NE(found, nullptr);
      EXPECT_EQ(found->name, 10 * i + static_cast<int>(key));
    }
  EXPECT_EQ(queue.take_any(), nullptr);
}

TEST(KeyedQueue, does_not_remove_a_node_that_it_does_not_hold) {
  KeyedQueue<Node> queue;
  Node held{1}, gone{2};
  queue.push(held, 4);
  queue.push(gone, 4);
  EXPECT_TRUE(queue.remove(gone));
  EXPECT_FALSE(queue.remove(gone));
  EXPECT_TRUE(queue.remove(held));
}

TEST(KeyedQueue, gives_all_nodes_back_one_by_one) {
  KeyedQueue<Node> queue;
  std::deque<Node> nodes(50);
  int named = 0;
  for (Node& node : nodes) queue.push(node, static_cast<uint64_t>(++named) * 3);
  int taken = 0;
  while (queue.take_any() != nullptr) ++taken;
  EXPECT_EQ(taken, 50);
}

}  // namespace
}  // namespace fccl::core
