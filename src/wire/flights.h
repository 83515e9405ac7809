// Flights: the operations that a transport has taken, by their tags, and the room that its rails have for more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace fccl::core {

class Port;

// An endpoint owns it, and its turn guards it. A tag names one operation until that ends; the numbers of tags are as many as
// the rails have room for together, so none is ever missing.
class Flights {
 public:
  struct Flight {
    Port* port = nullptr;
    uint64_t note = 0;
    int rail = 0;
  };

  // `budget`: operations per rail.
  Flights(int rails, int budget) : flights_(static_cast<size_t>(rails * budget)), room_(static_cast<size_t>(rails), budget) {
    for (size_t i = flights_.size(); i > 0; --i) free_.push_back(static_cast<uint32_t>(i - 1));
  }

  int rails() const { return static_cast<int>(room_.size()); }
  size_t room(int rail) const { return static_cast<size_t>(room_[rail]); }
  // Returns the tag of the operation that begins after `others` more have begun; `others` is less than the room of some rail.
  uint32_t next_tag(size_t others) const { return free_[free_.size() - 1 - others]; }
  // The operation with the next tag begins.
  void begin(const Flight& flight) {
    flights_[free_.back()] = flight;
    free_.pop_back();
    --room_[flight.rail];
  }
  // The operation with that tag ends; returns nothing if no operation has it.
  std::optional<Flight> end(uint64_t tag) {
    if (tag >= flights_.size() || flights_[tag].port == nullptr) return std::nullopt;
    const Flight flight = std::exchange(flights_[tag], {});
    free_.push_back(static_cast<uint32_t>(tag));
    ++room_[flight.rail];
    return flight;
  }

 private:
  std::vector<Flight> flights_;  // by tag
  std::vector<uint32_t> free_;   // tags
  std::vector<int> room_;        // by rail
};

}  // namespace fccl::core
