// Slots: the operations of a rail that have not ended, and queues of those that libfabric has not taken yet.
#pragma once

#include <rdma/fabric.h>

#include <functional>
#include <vector>

#include "wire/transport.h"

namespace fccl::core::ofi {

// One operation. libfabric identifies it by its first member, which is libfabric's own until the operation ends.
struct Slot {
  fi_context2 context{};
  Operation operation;
  Slot* next = nullptr;
};

// First in, first out, linked through the slots.
class SlotQueue {
 public:
  bool empty() const { return first_ == nullptr; }
  Slot& front() const { return *first_; }
  void push(Slot& slot) {
    slot.next = nullptr;
    (first_ == nullptr ? first_ : last_->next) = &slot;
    last_ = &slot;
  }
  Slot& pop() {
    Slot& slot = *first_;
    first_ = slot.next;
    return slot;
  }

 private:
  Slot* first_ = nullptr;
  Slot* last_ = nullptr;
};

// A fixed number of slots, one for each operation that a rail may have. The rail owns them; one thread at a time.
class Slots {
 public:
  explicit Slots(size_t count) : slots_(count) {
    for (Slot& slot : slots_) give_back(slot);
  }

  bool empty() const { return free_ == nullptr; }
  Slot& take(const Operation& operation) {
    Slot& slot = *free_;
    free_ = slot.next;
    slot.operation = operation;
    return slot;
  }
  void give_back(Slot& slot) {
    slot.next = free_;
    free_ = &slot;
  }
  // Returns the slot that a context of libfabric belongs to, or nullptr if it belongs to none.
  Slot* of(void* context) {
    const auto* slot = static_cast<const Slot*>(context);
    const bool inside = !std::less<>()(slot, slots_.data()) && std::less<>()(slot, slots_.data() + slots_.size());
    return inside ? static_cast<Slot*>(context) : nullptr;
  }

 private:
  std::vector<Slot> slots_;
  Slot* free_ = nullptr;
};

}  // namespace fccl::core::ofi
