// How a seed becomes a draw, and a draw becomes words.
#include "faults/draw.h"

#include <array>
#include <random>
#include <vector>

#include "base/call.h"

namespace fccl::core::faults {
namespace {

using namespace std::chrono_literals;
using testing::Recipe;

constexpr std::array kFaults{"kill -9",
                             "kill -9 of two",
                             "SIGSEGV",
                             "_exit without destroy",
                             "_exit after destroy",
                             "SIGSTOP shorter than the deadline",
                             "SIGSTOP longer than the deadline",
                             "revoke from another thread",
                             "abort from another thread",
                             "mismatch",
                             "skipped call"};
constexpr std::array kMoments{"before init", "in init", "idle", "in a collective", "in split", "in finalize and destroy"};
constexpr std::array kDifferences{"collective", "count", "type", "operator", "root", "order"};
constexpr std::array kSizes{"zero", "mailbox", "odd", "ring"};

// Every operator has a meaning for every one of these types.
constexpr std::array kReducedTypes{fcclInt32, fcclInt64, fcclFloat16, fcclBfloat16, fcclFloat32, fcclFloat64};
constexpr std::array kOps{ReduceOp::sum, ReduceOp::avg, ReduceOp::min, ReduceOp::max, ReduceOp::premul_sum};

// std::uniform_int_distribution may differ between standard libraries.
class Dice {
 public:
  explicit Dice(uint64_t seed) : generator_(seed * 0x9e3779b97f4a7c15ULL + 1) {}
  size_t below(size_t bound) { return static_cast<size_t>(generator_() % bound); }
  template <class T>
  T one_of(const std::vector<T>& choices) {
    return choices[below(choices.size())];
  }

 private:
  std::mt19937_64 generator_;
};

// Deaths and stops are drawn more often than the rest, since they have more moments.
Fault draw_fault(Dice& dice) {
  using enum Fault;
  return dice.one_of<Fault>({kill,         kill,         kill,          kill_two,      kill_two,
                             segv,         segv,         exit_silently, exit_silently, exit_after_destroy,
                             stop_briefly, stop_briefly, stop_for_long, stop_for_long, revoke,
                             abort,        mismatch,     mismatch,      mismatch,      skip});
}

Moment draw_moment(Dice& dice, Fault fault) {
  using enum Moment;
  switch (fault) {
    case Fault::exit_after_destroy:
      return dice.one_of<Moment>({idle, in_collective});
    case Fault::stop_briefly:
    case Fault::stop_for_long:
      return dice.one_of<Moment>({in_init, in_collective, in_collective, in_collective, in_split});
    case Fault::revoke:
      return dice.one_of<Moment>({idle, in_collective, in_split});
    case Fault::abort:
    case Fault::mismatch:
    case Fault::skip:
      return in_collective;
    default:
      return dice.one_of<Moment>(
          {before_init, in_init, in_init, idle, in_collective, in_collective, in_collective, in_collective, in_split, at_end});
  }
}

// A barrier differs from other calls only in the collective.
Difference draw_difference(Dice& dice, fcclColl_t called) {
  using enum Difference;
  std::vector<Difference> possible{Difference::collective, order};
  if (called != fcclCollBarrier) possible.insert(possible.end(), {count, type});
  if (testing::reduces(called)) possible.push_back(op);
  if (testing::has_root(called)) possible.push_back(root);
  return dice.one_of(possible);
}

size_t draw_count(Dice& dice, Size size, size_t element, int ranks) {
  switch (size) {
    case Size::zero:
      return 0;
    case Size::mailbox:
      return 1 + dice.below(4096 / element / ranks);
    case Size::odd:
      return 1 + 2 * dice.below(100'000 / element);
    case Size::ring:
      return 4096 / element + dice.below((1 << 20) / element);
  }
  return 0;
}

Recipe draw_recipe(Dice& dice, const Draw& draw) {
  Recipe recipe;
  recipe.collective = static_cast<fcclColl_t>(dice.below(fcclCollSend));
  const bool reduces = testing::reduces(recipe.collective);
  recipe.dtype =
      reduces ? kReducedTypes[dice.below(kReducedTypes.size())] : static_cast<fcclDataType_t>(dice.below(fcclNumTypes));
  recipe.op = reduces ? kOps[dice.below(kOps.size())] : ReduceOp::sum;
  recipe.root = static_cast<int>(dice.below(draw.ranks));
  recipe.in_place = dice.below(3) == 0 && !testing::exchanges(recipe.collective);
  recipe.misalignment = draw.size == Size::odd ? 1 + dice.below(15) : 0;
  recipe.count = draw_count(dice, draw.size, size_of(recipe.dtype), draw.ranks);
  if (recipe.collective == fcclCollBarrier) recipe.count = 0;
  return recipe;
}

// Draws what some recipes have beyond the rest: blocks with counts of their own, or a sum into another type.
void draw_variant(Dice& dice, Draw& draw) {
  Recipe& recipe = draw.recipe;
  recipe.shares = testing::kEveryShares[dice.below(testing::kEveryShares.size())];
  // Equal blocks are never all empty, so that what is to differ does.
  if (draw.fault == Fault::mismatch || draw.fault == Fault::skip) recipe.shares = testing::Shares::equal;
  recipe.is_displaced = dice.below(2) == 0;
  recipe.widens = !recipe.in_place && testing::may_widen(recipe.collective, recipe.dtype) && dice.below(2) == 0;
}

// Memory that peers map, on every rank or on some: last, so that a seed's other choices stay.
void draw_buffers(Dice& dice, Draw& draw) {
  using enum testing::Buffers;
  draw.recipe.buffers = dice.one_of<testing::Buffers>({own, arena, arena, mixed});
}

// Hosts where ranks meet a fault after init: what happens before is for the tests of hosts.
void draw_hosts(Dice& dice, Draw& draw) {
  if (dice.below(3) != 0 || (draw.moment != Moment::idle && draw.moment != Moment::in_collective)) return;
  const int first = 1 + static_cast<int>(dice.below(static_cast<size_t>(draw.ranks - 1)));
  const bool in_turn = dice.below(3) == 0;
  for (int rank = 0; rank < draw.ranks; ++rank) draw.host_of.push_back(in_turn ? rank % 2 : rank >= first ? 1 : 0);
}

// A run that hangs must not look like one that waits for a deadline, so deadlines are long unless they are what is tested.
void draw_times(Dice& dice, Draw& draw) {
  draw.delay = std::chrono::microseconds(dice.below(draw.moment == Moment::in_init ? 8'000 : 60'000));
  draw.pause = std::chrono::milliseconds(100 + dice.below(600));
  draw.deadline = draw.fault == Fault::stop_for_long ? 1500ms : 20'000ms;
  const bool init_may_wait = draw.moment == Moment::before_init || draw.moment == Moment::in_init;
  draw.init_deadline = init_may_wait && draw.fault != Fault::stop_briefly ? 2500ms : draw.deadline;
}

}  // namespace

Draw draw_of(uint64_t seed) {
  Dice dice(seed);
  Draw draw;
  draw.seed = seed;
  draw.ranks = 2 + static_cast<int>(dice.below(5));
  draw.fault = draw_fault(dice);
  if (draw.fault == Fault::kill_two && draw.ranks == 2) draw.ranks = 3;
  draw.moment = draw_moment(dice, draw.fault);
  draw.size = static_cast<Size>(dice.below(kSizes.size()));
  draw.recipe = draw_recipe(dice, draw);
  draw.on_stream = dice.below(3) == 0;
  draw.difference = draw_difference(dice, draw.recipe.collective);
  draw.victim = static_cast<int>(dice.below(draw.ranks));
  if (draw.fault == Fault::kill_two)
    draw.second_victim = (draw.victim + 1 + static_cast<int>(dice.below(draw.ranks - 1))) % draw.ranks;
  draw.warm_calls = static_cast<int>(dice.below(4));
  draw_times(dice, draw);
  const bool may_be_sends = draw.fault != Fault::mismatch && draw.fault != Fault::skip && draw.moment != Moment::at_end;
  draw.by_sends = may_be_sends && dice.below(4) == 0;
  draw.is_tagged = dice.below(2) == 0;
  draw_variant(dice, draw);
  draw_hosts(dice, draw);
  draw.in_group = !draw.by_sends && dice.below(4) == 0;
  draw_buffers(dice, draw);
  return draw;
}

std::string shown_of(const Recipe& recipe) {
  // Messages show a hash of such counts, so the name alone is known here.
  if (testing::is_uneven(recipe.collective)) return name_of(recipe.collective);
  return testing::text_of(recipe);
}

std::string describe(const Draw& draw) {
  std::string text = std::to_string(draw.ranks) + " ranks, ";
  if (!draw.host_of.empty()) {
    text += "on hosts";
    for (const int host : draw.host_of) text += ' ' + std::to_string(host);
    text += ", ";
  }
  text += kFaults[static_cast<int>(draw.fault)];
  if (draw.fault == Fault::mismatch) text += std::string(" of ") + kDifferences[static_cast<int>(draw.difference)];
  text += std::string(" ") + kMoments[static_cast<int>(draw.moment)] + ", victim " + std::to_string(draw.victim);
  if (draw.second_victim >= 0) text += " and " + std::to_string(draw.second_victim);
  text += " after " + std::to_string(draw.delay.count()) + " us";
  if (draw.fault == Fault::stop_briefly) text += ", for " + std::to_string(draw.pause.count()) + " ms";
  return text + "; " + kSizes[static_cast<int>(draw.size)] + ": " + testing::describe(draw.recipe) +
         (draw.by_sends ? ", as sends from everybody to everybody" : "") +
         (draw.by_sends && draw.is_tagged ? " with tags" : "") + (draw.in_group ? ", in a group" : "") +
         (draw.on_stream ? ", on a stream" : ", blocking") + ", " + std::to_string(draw.warm_calls) +
         " calls before; deadline " + std::to_string(draw.deadline.count()) + " ms, of init " +
         std::to_string(draw.init_deadline.count()) + " ms";
}

Recipe differing(const Draw& draw) {
  Recipe other = draw.recipe;
  switch (draw.difference) {
    case Difference::collective:
      other.collective = draw.recipe.collective == fcclCollAllGather ? fcclCollAllReduce : fcclCollAllGather;
      other.dtype = draw.recipe.collective == fcclCollBarrier ? fcclInt32 : fcclFloat32;
      other.op = ReduceOp::sum;
      break;
    case Difference::count:
      other.count = draw.recipe.count == 0 ? 1 : draw.recipe.count * 2;
      break;
    case Difference::type:
      other.dtype = draw.recipe.dtype == fcclInt32 ? fcclFloat32 : fcclInt32;
      break;
    case Difference::op:
      other.op = draw.recipe.op == ReduceOp::max ? ReduceOp::sum : ReduceOp::max;
      break;
    case Difference::root:
      other.root = (draw.recipe.root + 1) % draw.ranks;
      break;
    case Difference::order:
      other = {.collective = fcclCollAllGather, .dtype = fcclInt16, .count = draw.recipe.count + 3};
      break;
  }
  other.widens = other.widens && testing::may_widen(other.collective, other.dtype);
  return other;
}

}  // namespace fccl::core::faults
