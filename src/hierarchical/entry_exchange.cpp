// Sends an entry in each round, reads that of the round, and hands on what it carried.
#include "hierarchical/entry_exchange.h"

#include "kernels/copy.h"
#include "wire/lane.h"

namespace fccl::core {

EntryExchange::EntryExchange(WireLane& lane) : lane_(lane), entries_(lane), contents_(static_cast<size_t>(lane.members())) {}

void EntryExchange::begin(const WireTask& task, bool has_content) {
  task_ = &task;
  has_content_ = has_content && task.slices() > 0;
  rounds_ = plan::EntryRounds(lane_.members(), task.by_dissemination);
  told_ = heard_ = 0;
  awaited_ = rounds_.after(lane_.me(), 1);
  differing_ = -1;
  entries_.begin(task.call);
}

// The message of a round holds without those of earlier rounds, which may be late.
bool EntryExchange::knows(int member) const {
  const int round = rounds_.round_of(rounds_.before(lane_.me(), member));
  if (round < heard_) return true;
  const int teller = rounds_.before(lane_.me(), rounds_.distance(round));
  return entries_.has_entered(teller) && entries_.agrees(teller);
}

void EntryExchange::advance() {
  while (differing_ < 0 && (tell() || hear())) {
  }
}

// Tells one member; false if all are told, or it is too early.
bool EntryExchange::tell() {
  if (has_told_all() || !rounds_.may_tell(told_, heard_)) return false;
  const int member = rounds_.after(lane_.me(), rounds_.distance(told_));
  if (!entries_.may_enter(member).reached()) {
    awaited_ = member;
    return false;
  }
  entries_.enter(member, has_content_ ? put_contents(member, entries_.payload_for(member)) : 0);
  ++told_;
  return true;
}

// Hears of one member; false if all are heard, or its entry has not come, or differs.
bool EntryExchange::hear() {
  if (has_heard_all()) return false;
  const int member = rounds_.before(lane_.me(), rounds_.distance(heard_));
  if (!entries_.has_entered(member)) {
    awaited_ = member;
    return false;
  }
  if (!entries_.agrees(member)) {
    differing_ = member;
    return false;
  }
  if (has_content_) find_contents(member);
  ++heard_;
  return true;
}

template <class Use>
void EntryExchange::for_each_chunk(int round, int source, int receiver, Use&& use) const {
  const Collective& row = task_->call.signature.row();
  const bool is_one = task_->input.blocks->chunks() == 1;
  const plan::Takers takers{row, task_->root};
  if (row.input == Extent::block_per_rank && !is_one)
    rounds_.for_each_taker(round, source, receiver, takers, use);
  else if (rounds_.has_taker(round, source, receiver, takers))
    use(is_one ? 0 : source);
}

// Returns the bytes of the message of this round.
size_t EntryExchange::put_contents(int receiver, std::byte* into) const {
  std::byte* end = into;
  for (int i = 0; i < rounds_.sources(told_); ++i) {
    const int source = rounds_.before(lane_.me(), i);
    for_each_chunk(told_, source, receiver, [&](int chunk) {
      const size_t bytes = bytes_of(source, chunk);
      if (source == lane_.me())
        gather(chunk, end);
      else
        copy_bytes(end, held(source, chunk), bytes);
      end += bytes;
    });
  }
  return static_cast<size_t>(end - into);
}

void EntryExchange::find_contents(int sender) {
  const std::byte* next = entries_.payload_of(sender).data();
  for (int i = 0; i < rounds_.sources(heard_); ++i) {
    const int source = rounds_.before(sender, i);
    contents_[static_cast<size_t>(source)] = next;
    for_each_chunk(heard_, source, lane_.me(), [&](int chunk) { next += bytes_of(source, chunk); });
  }
}

// Returns where a chunk of another member lies, in the entry that brought it.
const std::byte* EntryExchange::held(int source, int chunk) const {
  const std::byte* at = contents_[static_cast<size_t>(source)];
  bool is_found = false;
  for_each_chunk(rounds_.round_of(rounds_.before(lane_.me(), source)), source, lane_.me(), [&](int other) {
    is_found |= other == chunk;
    if (!is_found) at += bytes_of(source, other);
  });
  return at;
}

// Blocks of pairs are passed on only between hosts with as many ranks each, so those of another member for anyone are as long
// as this one's for any peer.
size_t EntryExchange::bytes_of(int source, int chunk) const {
  if (task_->call.signature.row().has_pairs() && source != lane_.me()) chunk = lane_.peer(1);
  return task_->input.elements_of_chunk(chunk, 0) * task_->wire_element_bytes();
}

void EntryExchange::gather(int chunk, std::byte* into) const {
  int place = task_->input.blocks->begin[chunk];
  for (const int block : task_->input.blocks->of(chunk)) {
    const size_t bytes = task_->input.elements_of(block, 0) * task_->wire_element_bytes();
    copy_bytes(into, task_->input.at(block, place++, 0), bytes);
    into += bytes;
  }
}

}  // namespace fccl::core
