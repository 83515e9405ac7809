// LinkedQueue and KeyedQueue: queues that link nodes of their owners, so that they allocate no memory per node.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fccl::core {

// Nodes in the order in which they were added. A node is in at most one queue, by its member `next`.
template <class Node>
class LinkedQueue {
 public:
  Node* front() const { return first_; }
  void push(Node& node) {
    node.next = nullptr;
    (last_ == nullptr ? first_ : last_->next) = &node;
    last_ = &node;
  }
  void pop() {
    (void)remove_if([](const Node&) { return true; });
  }
  // Takes out the first node for which the condition holds; null if it holds for none.
  template <class Condition>
  Node* remove_if(Condition holds_for) {
    Node* before = nullptr;
    for (Node* each = first_; each != nullptr; before = each, each = each->next) {
      if (!holds_for(*each)) continue;
      (before == nullptr ? first_ : before->next) = each->next;
      if (last_ == each) last_ = before;
      return each;
    }
    return nullptr;
  }
  bool remove(const Node& node) {
    return remove_if([&](const Node& each) { return &each == &node; }) != nullptr;
  }
  // Returns the first node for which the condition holds; null if it holds for none.
  template <class Condition>
  Node* find_if(Condition holds_for) const {
    Node* each = first_;
    while (each != nullptr && !holds_for(*each)) each = each->next;
    return each;
  }

 private:
  Node* first_ = nullptr;
  Node* last_ = nullptr;
};

// Queues nodes by a key: the time for a node does not grow with the number of nodes of other keys. Nodes of one key keep their
// order. Allocates only when it holds more nodes than ever before.
template <class Node>
class KeyedQueue {
 public:
  void push(Node& node, uint64_t key) {
    if (++size_ > 2 * queues_.size()) grow();
    node.key = key;
    queue_of(key).push(node);
  }
  template <class Condition>
  Node* remove_if(uint64_t key, Condition holds_for) {
    Node* const found = queue_of(key).remove_if([&](const Node& each) { return each.key == key && holds_for(each); });
    if (found != nullptr) --size_;
    return found;
  }
  bool remove(const Node& node) {
    return remove_if(node.key, [&](const Node& each) { return &each == &node; }) != nullptr;
  }
  template <class Condition>
  Node* find_if(uint64_t key, Condition holds_for) {
    return queue_of(key).find_if([&](const Node& each) { return each.key == key && holds_for(each); });
  }
  // Takes out any node; null if it is empty.
  Node* take_any() {
    for (LinkedQueue<Node>& queue : queues_)
      if (Node* node = queue.front()) {
        queue.pop();
        --size_;
        return node;
      }
    return nullptr;
  }

 private:
  static constexpr size_t kFewest = 16;

  // The number of queues is a power of two. Neighbouring keys use neighbouring queues.
  LinkedQueue<Node>& queue_of(uint64_t key) { return queues_[key & (queues_.size() - 1)]; }

  void grow() {
    std::vector<LinkedQueue<Node>> before(2 * queues_.size());
    queues_.swap(before);
    for (LinkedQueue<Node>& queue : before)
      while (Node* node = queue.front()) {
        queue.pop();
        queue_of(node->key).push(*node);
      }
  }

  std::vector<LinkedQueue<Node>> queues_ = std::vector<LinkedQueue<Node>>(kFewest);
  size_t size_ = 0;
};

}  // namespace fccl::core
