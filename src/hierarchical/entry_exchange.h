// EntryExchange: tells the members of a column of a call, hears of theirs, and carries small payloads along.
#pragma once

#include <cstddef>
#include <vector>

#include "hierarchical/task.h"
#include "plan/entry_rounds.h"
#include "wire/entries.h"

namespace fccl::core {

class WireLane;

// An InterHostCall owns it; the one thread that runs the lane's current call uses it. No function waits. A member that finds a
// call which differs from its own tells nobody more, so no member hears that all agree.
class EntryExchange {
 public:
  // The caller keeps the lane longer than this.
  explicit EntryExchange(WireLane& lane);

  WireEntries& entries() { return entries_; }
  const WireEntries& entries() const { return entries_; }

  // Begins a call, which the caller keeps until the next one. `content`: each member's content travels with the entries.
  void begin(const WireTask& task, bool has_content);
  // Tells and hears as much as is possible now; content must be there before the first call.
  void advance();
  bool has_told_all() const { return told_ == rounds_.count(); }
  // True once every member is known to have made the same call.
  bool has_heard_all() const { return heard_ == rounds_.count(); }
  // True once that member is known to have made the same call.
  bool knows(int member) const;
  // Return a member that the exchange waits for, which is another one, and one whose call differs, or -1.
  int awaited() const { return awaited_; }
  int differing() const { return differing_; }
  // Returns what a member gave for this one, once all are heard; it stays until the next begin.
  const std::byte* content_of(int member) const { return contents_[static_cast<size_t>(member)]; }

 private:
  bool tell();
  bool hear();
  size_t put_contents(int receiver, std::byte* into) const;
  void find_contents(int sender);
  // Calls `use` with each chunk of `source` in the message of that round to `receiver`, in their order.
  template <class Use>
  void for_each_chunk(int round, int source, int receiver, Use&& use) const;
  const std::byte* held(int source, int chunk) const;
  size_t bytes_of(int source, int chunk) const;
  void gather(int chunk, std::byte* into) const;

  WireLane& lane_;
  WireEntries entries_;
  const WireTask* task_ = nullptr;
  plan::EntryRounds rounds_;
  bool has_content_ = false;
  int told_ = 0, heard_ = 0;  // rounds
  int awaited_ = 0;
  int differing_ = -1;
  std::vector<const std::byte*> contents_;  // by member, in the entry that brought it
};

}  // namespace fccl::core
