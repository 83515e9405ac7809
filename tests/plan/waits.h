// Waits: a graph of events and of what each waits for, sorted so that causes come first.
#pragma once

#include <utility>
#include <vector>

namespace fccl::core::plan {

class Waits {
 public:
  explicit Waits(int events) : events_(events) {}

  // The event never happens before the cause.
  void order(int cause, int event) { edges_.push_back({cause, event, true}); }
  // The event waits for the cause in some runs and not in all: it may close a circle, but keeps nothing apart.
  void hinder(int cause, int event) { edges_.push_back({cause, event, false}); }

  // All events, causes first; shorter than the number of events if some wait in a circle.
  std::vector<int> sort() const;

  struct Edge {
    int cause;
    int event;
    bool always;
  };
  const std::vector<Edge>& edges() const { return edges_; }

 private:
  int events_;
  std::vector<Edge> edges_;
};

}  // namespace fccl::core::plan
