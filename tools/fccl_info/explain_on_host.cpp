// Puts the facts of a call together, and the route that they decide into words.
#include "fccl_info/explain_on_host.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "base/call.h"
#include "host/route.h"
#include "segment/lane_board.h"
#include "segment/segment.h"
#include "settings/settings.h"

namespace fccl::core {
namespace {

// A state in which init may leave a lane, and when it does.
struct Trial {
  std::string when;
  Attaching attaching;
  bool has_long_boxes = false;
  bool is_case_of_last = false;  // its condition implies that of the trial before it
};

struct Answer {
  std::string when, words;
};

std::vector<Trial> trials_of(const HostQuestion& question, const Settings& settings) {
  const bool exchanges = lane_of(question.collective) == kPairLane;
  const Attaching closed, open{true, false, exchanges ? kTuning.least_exchanged : kTuning.least_gathered};
  const std::string& wanted = settings.cross_memory_attach;
  Trial shared{.when = "if ranks share processors", .attaching = wanted == "on" ? open : closed, .has_long_boxes = true};
  if (wanted != "auto") return {shared, {"else", shared.attaching}};
  if (question.ranks > kTuning.most_tried_ranks) return {shared, {"else", exchanges ? closed : open}};
  Attaching far_faster = open;
  far_faster.past_caches = true;
  return {shared,
          {"if init finds that reading peers' memory is no faster than slots", closed},
          {"if init finds that it is faster", open},
          {.when = fmt::format("if init finds that it is {} times as fast, or faster", kTuning.far_faster),
           .attaching = far_faster,
           .is_case_of_last = true}};
}

const char* words_for(Variant variant) {
  switch (variant) {
    case Variant::whole:
      return "whole: each rank reduces the whole vector";
    case Variant::shards:
      return "shards: each rank reduces a shard, and takes the others' results";
    case Variant::of_two:
      return "of two: a rank gives its peer its whole vector, and a rank that takes the result reduces all of it";
    case Variant::blocks:
      break;
  }
  return "blocks: each rank takes or reduces its own";
}

// Reads a whole vector of each peer.
size_t read_by_rank(const Facts& facts) { return facts.call.signature.bytes() * static_cast<size_t>(facts.shape.ranks - 1); }

std::string reason_past_mailbox(const Facts& facts, Reason reason) {
  const Tuning& tuning = facts.tuning;
  const Layout output = facts.call.output(facts.shape.ranks);
  switch (reason) {
    case Reason::in_arenas:
      return "all inputs lie in arenas";
    case Reason::short_vector:
      return fmt::format("each rank reads {} bytes of its peers, at most {}", read_by_rank(facts), tuning.read_whole);
    case Reason::long_vector:
      return fmt::format("each rank would read {} bytes of its peers, more than {}", read_by_rank(facts), tuning.read_whole);
    case Reason::in_place:
      return "a rank that reduces the whole vector in place would overwrite what its peers read";
    case Reason::short_in_place:
      return fmt::format("two ranks reduce {} bytes in place, fewer than {}", output.total(), tuning.in_slots);
    case Reason::long_block:
      return fmt::format("the longest block has {} bytes, at least {}", output.most(), facts.attaching.least_block);
    case Reason::short_block:
      return fmt::format("the longest block has {} bytes, fewer than {}", output.most(), facts.attaching.least_block);
    case Reason::past_caches:
      return fmt::format("the result is not in place and has {} bytes, at least {}", output.total(),
                         facts.call.signature.row().has_pairs() ? tuning.exchanged_past_caches : tuning.past_caches);
    default:
      return "ranks read private memory only through slots";
  }
}

std::string words_for(const Facts& facts, const Route& route) {
  const size_t box = facts.box_bytes, room = facts.shape.mailbox_bytes;
  switch (route.reason) {
    case Reason::one_rank:
      return "there is one rank";
    case Reason::fits_box:
      return fmt::format("a rank gives at most {} bytes, and a box has {} (FCCL_MAILBOX_BYTES={})",
                         mailbox_bytes(facts.call, facts.shape.ranks), box, room);
    case Reason::private_counts:
      return fmt::format(
          "no rank knows the others' counts; the call ends here if all blocks and counts of each rank fit in {} bytes", room);
    default:
      break;
  }
  std::string reason = reason_past_mailbox(facts, route.reason);
  if (facts.past_mailbox) return reason;
  const size_t given = mailbox_bytes(facts.call, facts.shape.ranks), longest = facts.shape.long_box_bytes();
  return fmt::format("{}; a rank gives up to {} bytes, and a box has {}", reason, given,
                     given > longest ? fmt::format("at most {}", longest) : std::to_string(box));
}

std::string words_for_results(const Facts& facts, const Route& route) {
  const size_t bytes = facts.call.output(facts.shape.ranks).total();
  if (route.to_outputs)
    return fmt::format("taken from the peers' outputs: {} bytes, at least {}", facts.call.signature.result_bytes(),
                       facts.tuning.in_outputs);
  if (route.streams) return fmt::format("written past the caches: {} bytes, at least {}", bytes, facts.tuning.streamed);
  return "written through the caches";
}

std::string words_for_route(const Facts& facts) {
  const Route route = route_of(facts);
  std::string text = fmt::format("    path     {}\n", name_of(route.path));
  if (route.piece != 0)
    text += fmt::format("    variant  {}\n    piece    {} bytes of an input at a time\n    results  {}\n",
                        words_for(route.variant), route.piece, words_for_results(facts, route));
  return text + fmt::format("    because  {}\n", words_for(facts, route));
}

// Lets the last answer hold for one more trial.
void add_trial(Answer& last, const Trial& trial) {
  if (!trial.is_case_of_last) last.when += ", or " + trial.when.substr(trial.when.find(' ') + 1);
}

// The answers by trial; equal ones that follow each other are one.
std::vector<Answer> answers_for(const HostQuestion& question, const Settings& settings, const Call& call, bool past_mailbox) {
  const SegmentShape shape{question.ranks, settings.mailbox_bytes, settings.slot_bytes, question.ranks};
  const bool mapped = question.arena && settings.mapped == "on";
  const Offers offers{.all_in_place = question.in_place,
                      .any_in_place = question.in_place,
                      .mapped = mapped,
                      .outputs_mapped = mapped && question.collective == fcclCollAllReduce};
  std::vector<Answer> answers;
  const std::vector<Trial> trials = trials_of(question, settings);
  for (const Trial& trial : trials) {
    const size_t box_bytes = trial.has_long_boxes ? shape.long_box_bytes() : shape.box_bytes();
    std::string words = words_for_route({call, shape, trial.attaching, offers, box_bytes, past_mailbox});
    if (answers.empty() || answers.back().words != words)
      answers.push_back({trial.when, std::move(words)});
    else
      add_trial(answers.back(), trial);
  }
  if (answers.size() == 1) answers.front().when.clear();
  if (answers.size() == 2 && answers.front().when == trials.front().when) answers.back().when = "else";
  return answers;
}

std::string text_of(const std::vector<Answer>& answers) {
  std::string text;
  for (const Answer& answer : answers) text += (answer.when.empty() ? "" : answer.when + ":\n") + answer.words;
  return text;
}

// Sets equal blocks.
void set_blocks(UnevenBlocks& blocks, const Collective& row, int ranks, size_t bytes) {
  std::vector<ByteRange> ranges;
  ranges.reserve(static_cast<size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) ranges.push_back({static_cast<size_t>(rank) * bytes, bytes});
  if (row.input == Extent::block_per_rank)
    blocks.input.set(ranges);
  else
    blocks.input.set(bytes);
  if (row.output == Extent::block_per_rank)
    blocks.output.set(ranges);
  else
    blocks.output.set(bytes);
}

}  // namespace

Result<std::string> explain_on_host(const HostQuestion& question) {
  const Collective& row = row_of(question.collective);
  if (question.in_place && row.has_pairs())
    return fail(fcclInvalidArgument, fmt::format("{} is never in place: leave --in-place out", row.name));
  FCCL_TRY_ASSIGN(const Settings settings, read_settings());
  const size_t count = question.size / row.most_blocks(question.ranks) / size_of(question.dtype);
  Call call{{.collective = question.collective, .dtype = question.dtype, .root = row.is_rooted() ? 0 : -1, .count = count}};
  UnevenBlocks blocks;
  if (row.is_uneven()) {
    set_blocks(blocks, row, question.ranks, call.signature.bytes());
    call.uneven = &blocks;
  }
  const bool is_mapped = !question.arena || settings.mapped == "on";
  std::string text =
      fmt::format("{} of {} {}{} on one host of {} rank{}, in {}{}{}\n", row.name, count, name_of(question.dtype),
                  row.has_rank_blocks() ? " per block" : "", question.ranks, question.ranks == 1 ? "" : "s",
                  question.arena ? "arenas" : "private memory", question.in_place ? ", in place" : "",
                  is_mapped ? "" : ", which FCCL_MAPPED=off keeps from being mapped");
  text += text_of(answers_for(question, settings, call, false));
  if (row.has_private_counts() && question.ranks > 1) text += "else\n" + text_of(answers_for(question, settings, call, true));
  return text;
}

}  // namespace fccl::core
