"""The mutants: small faults of the kind that people make here, each of which some test must find."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    """One fault: in `path`, the text `right`, which occurs once, becomes `wrong`.

    Tests whose names contain `suspect` run before all others: a call that never ends costs each of them a
    deadline.
    """

    name: str
    path: str
    right: str
    wrong: str
    suspect: str = ""


RING = "src/host/ring.cpp"
RING_REDUCE = "src/host/ring_reduce.cpp"
MAILBOX = "src/host/mailbox.cpp"
ATTACH = "src/host/attach.cpp"
LANE = "src/host/lane.h"
LANE_SLOTS = "src/host/lane_slots.h"
SEGMENT = "src/segment/segment.cpp"

MUTANTS = [
    # Lost flags.
    Mutant(
        "AllReduce never says that its results are there",
        RING_REDUCE,
        "    lane.my_board().results_published.publish(slice + 1);\n",
        "",
    ),
    Mutant(
        "a reader of Scatter never says that it is done with a slot",
        RING,
        "output.at(root, k), lane.slots.gather_slot(root, ring, slice), output.length(root, k));\n"
        "      lane.my_board().drained.publish(slice + 1);\n",
        "output.at(root, k), lane.slots.gather_slot(root, ring, slice), output.length(root, k));\n",
    ),
    Mutant(
        "a word is announced before its payload is there",
        LANE,
        "    if (rest < bytes) put(place + rest, source + rest, bytes - rest);\n"
        "    box.word.store(word_, std::memory_order_release);\n",
        "    box.word.store(word_, std::memory_order_release);\n"
        '    for (int i = 0; i < 2000; ++i) asm volatile("" ::: "memory");\n'
        "    if (rest < bytes) put(place + rest, source + rest, bytes - rest);\n",
    ),
    Mutant(
        "a rank that leaves does not say so",
        "src/health/liveness.cpp",
        "  peers_.own_state().left.store(1, std::memory_order_release);\n",
        "",
    ),
    Mutant(
        "a source of mapped memory leaves before it has been read",
        "src/host/mapped.cpp",
        "      if (row.moves(me, lane.peer(i), root)) co_await lane.drained(lane.peer(i), first + k + 1);\n",
        "      if (row.moves(me, lane.peer(i), root)) continue;\n",
    ),
    Mutant(
        "a rank of a mapped AlltoAllV leaves before its peers have read",
        "src/host/mapped_all_to_all_v.cpp",
        "  for (int i = 1; i < lane.ranks(); ++i) co_await lane.drained(lane.peer(i), first + slices);\n",
        "",
    ),
    Mutant(
        "the source of an AllGather by attach leaves before it has been read",
        ATTACH,
        "    for (int i = 1; i < lane.ranks(); ++i) co_await lane.drained(lane.peer(i), first + k + 1);\n",
        "    ;\n",
    ),
    Mutant(
        "a piece of an AllGather by attach is read before its source has brought it in",
        ATTACH,
        "      co_await lane.published(lane.peer(i), first + k + 1);\n",
        "",
    ),
    Mutant(
        "a rank that could not read its peers tells nobody",
        ATTACH,
        "    if (!all_read) lane.my_board().unread.publish(first + 1);\n",
        "",
    ),
    # Stale slots.
    Mutant(
        "ReduceScatter reads a slot before its slice is there",
        RING_REDUCE,
        "co_await lane.published(lane.peer(i), slice + 1);\n    const int me =",
        "co_await lane.published(lane.peer(i), slice);\n    const int me =",
    ),
    Mutant(
        "AllReduce of two ranks reads a slot before its slice is there",
        RING_REDUCE,
        "    co_await lane.published(peer, slice + 1);\n    reduce_with_peer",
        "    co_await lane.published(peer, slice);\n    reduce_with_peer",
    ),
    Mutant(
        "the root of Reduce of two ranks reads a slot before its slice is there",
        RING_REDUCE,
        "      co_await lane.published(peer, slice + 1);\n      reduce_with_peer",
        "      co_await lane.published(peer, slice);\n      reduce_with_peer",
    ),
    Mutant(
        "AlltoAll reads a slot before its slice is there",
        "src/host/ring_all_to_all.cpp",
        "      co_await lane.published(peer, slice + 1);\n",
        "      co_await lane.published(peer, slice);\n",
    ),
    Mutant(
        "the root of Broadcast overwrites a slot that is still being read",
        RING,
        "for (int i = 1; k >= 2 && i < lane.ranks(); ++i) co_await lane.drained(lane.peer(i), slice - 1);",
        "",
    ),
    Mutant(
        "a gather has one slot instead of some",
        LANE_SLOTS,
        "return segment_->gather_ring(source, id_) + ring.offset(slice);",
        "return segment_->gather_ring(source, id_) + ring.offset(0);",
    ),
    Mutant(
        "a pair of ranks has one slot instead of some",
        LANE_SLOTS,
        "return segment_->pair_ring(source, destination) + ring.offset(slice);",
        "return segment_->pair_ring(source, destination) + ring.offset(0);",
    ),
    Mutant(
        "a lane has one box instead of two",
        LANE,
        "int parity() const { return static_cast<int>(sequence_ & 1); }",
        "int parity() const { return 0; }",
    ),
    Mutant(
        "slices are numbered anew in each call",
        LANE,
        "passed_ = {passed_.slices + used, strides};",
        "passed_.strides = used > 0 ? strides : Strides{};",
    ),
    Mutant(
        "a slice is put ahead where a peer may still read",
        "src/host/put_ahead.cpp",
        "  if (before != ring.stride && before != 0) return false;\n",
        "",
    ),
    Mutant(
        "a slice is put ahead where the reader of a call with a root may be further behind",
        "src/host/put_ahead.cpp",
        "    if (!lane.drained(lane.peer(i), lane.slices() - 1).reached()) return false;\n",
        "    continue;\n",
    ),
    # Wrong offsets.
    Mutant(
        "a payload that does not fit in the line is written over the call in full",
        LANE,
        "return bytes <= box.line.size() ? box.line.data()",
        "return bytes <= box.line.size() + 64 ? box.line.data()",
    ),
    Mutant(
        "AllReduce of a count that the ranks do not divide loses the rest",
        "src/host/shards.h",
        "const size_t elements = divided_up(s.count, static_cast<size_t>(ranks));",
        "const size_t elements = s.count / ranks;",
    ),
    Mutant(
        "ReduceScatter gives each peer the block of its neighbour",
        "src/host/put_slices.h",
        "peer, ring, slice), input.at(peer, k), ",
        "peer, ring, slice), input.at((peer + 1) % lane.ranks(), k), ",
    ),
    Mutant(
        "Scatter by mailbox takes the first block on every rank",
        MAILBOX,
        "payload + input_.offset(lane_.rank());",
        "payload;",
    ),
    Mutant(
        "the slots of two ranks overlap by one line",
        SEGMENT,
        "pair_slots = gather_slots + ranks * kLanes * shape.gather_ring_bytes();",
        "pair_slots = gather_slots + ranks * kLanes * shape.gather_ring_bytes() - 64;",
    ),
    Mutant(
        "every piece of an AllGather by attach is read from the beginning of the block",
        ATTACH,
        "(offer_of(lane, peer).source) + offset + k * output.piece;",
        "(offer_of(lane, peer).source) + offset;",
    ),
    # Calls that differ.
    Mutant(
        "ranks do not compare their counts",
        "src/base/signature.h",
        "words.count * 0x9e3779b97f4a7c15ULL ^ words.counts",
        "words.counts",
    ),
    Mutant(
        "ranks do not compare the counts of blocks that have their own",
        "src/base/signature.h",
        "words.count * 0x9e3779b97f4a7c15ULL ^ words.counts",
        "words.count * 0x9e3779b97f4a7c15ULL",
    ),
    Mutant(
        "of two ranks of an AlltoAllV only the one that receives compares counts",
        "src/host/pair_counts.h",
        "mine.sends == theirs.expects && mine.expects == theirs.sends",
        "mine.expects == theirs.sends",
    ),
    Mutant(
        "the ring of AlltoAllV has the slices of the rank's own longest block",
        "src/host/offer.cpp",
        "most = std::max(most, offer_of(lane, rank).longest);",
        "most = std::max(most, offer_of(lane, lane.rank()).longest);",
    ),
    Mutant(
        "a call on a stream reads the counts of the call that was issued behind it",
        "src/operations/issued_call.cpp",
        "  task_.call.uneven = blocks_.get();\n",
        "",
        "UnevenCollectives.on_a_stream_need_their_arrays",
    ),
    Mutant(
        "ranks do not compare the types of their results",
        "src/base/signature.h",
        "(s.widens ? kWidens : 0)",
        "0",
    ),
    Mutant(
        "ranks do not compare the numbers of their calls",
        "src/base/signature.h",
        "uint64_t h = (uint64_t{number} << 32) |",
        "uint64_t h = (uint64_t{number * 0U} << 32) |",
    ),
    Mutant(
        "a call that differs passes on the mailbox path",
        MAILBOX,
        "    if (!lane.agrees(peer)) co_return Differs{lane.rank_of(peer)};\n",
        "",
    ),
    # The value of a sum.
    Mutant(
        "slices of wider results of a ReduceScatter are as long as those that are given",
        RING_REDUCE,
        "const size_t result_piece = route.piece * task.call.signature.widening();",
        "const size_t result_piece = route.piece;",
    ),
    Mutant(
        "wider results of an AllReduce find no room in a slot",
        "src/host/route.cpp",
        "shape.pair_slot_bytes() / facts.call.signature.widening();",
        "shape.pair_slot_bytes();",
    ),
    Mutant(
        "partials of a sum into float32 are rounded between hosts",
        "src/hierarchical/wire_planner.cpp",
        "s.widens ? WireType::float32 : settings_.wire_type",
        "settings_.wire_type",
    ),
    Mutant(
        "what is given between hosts is looked for where results of its elements would lie",
        "src/hierarchical/relay_context.h",
        "((layout().offset(block) + offset) >> widening_shift)",
        "(layout().offset(block) + offset)",
    ),
    Mutant(
        "wider results may be written over what is given",
        "src/c_api/user_call.cpp",
        "recv + received <= send || is_in_place(call, rank, ranks)) return {};",
        "recv + received <= send || send == recv) return {};",
    ),
    Mutant(
        "every rank's factor is this rank's own",
        "src/host/shards.h",
        "lane.scalars[rank] = lane.record_of(rank).scalar;",
        "lane.scalars[rank] = lane.record_of(lane.rank()).scalar;",
    ),
    Mutant(
        "the sources of a reduction begin with this rank's",
        MAILBOX,
        "    lane_.sources[from] = block;\n",
        "    lane_.sources[(from - lane_.rank() + lane_.ranks()) % lane_.ranks()] = block;\n",
    ),
    # Failure.
    Mutant(
        "what was read from a rank that has failed is believed",
        ATTACH,
        "  lane.count_slices(output.count());\n  if (lane.has_failed()) co_return Failed{};\n",
        "  lane.count_slices(output.count());\n",
    ),
    Mutant(
        "what was read from another process with a dead one's id is believed",
        "src/segment/peer_memory.cpp",
        " && seen == mark.value;",
        ";",
    ),
    Mutant(
        "a wait has no deadline",
        "src/health/wait_judge.cpp",
        "if (waited >= wait.timeout &&",
        "if (waited >= 1000 * wait.timeout &&",
    ),
    Mutant(
        "a rank that did its part before it died fails the call",
        "src/health/wait_judge.cpp",
        "  if (is_reached(wait, awaited)) return {};\n",
        "",
    ),
    # Between hosts.
    Mutant(
        "ranks of several hosts do not compare the counts of an AlltoAllV",
        "src/hierarchical/counts_exchange.cpp",
        "    if (!agree(counts_for(call, rank, ranks), theirs)) return other_counts(rank, theirs);\n",
        "",
        "AcrossHosts.counts_that_differ",
    ),
    Mutant(
        "an AlltoAllV between hosts has the slices of the rank's own longest block",
        "src/hierarchical/counts_exchange.cpp",
        "std::ranges::max(theirs_, {}, &Told::longest).longest",
        "mine_.front().longest",
        "AcrossHosts.exchanges_of_every_pattern",
    ),
    Mutant(
        "a slice is sent before the host has made it",
        "src/hierarchical/plan_executor.cpp",
        "if (sending_.slice < std::min(slices, ready)) moved",
        "if (sending_.slice < slices) moved",
    ),
    Mutant(
        "a sum is written over what is still to be sent",
        "src/hierarchical/plan_executor.cpp",
        "if (slice >= ready || (sending_.slice == slice && sending_.step < receiving_.step)) return false;",
        "if (slice >= ready) return false;",
    ),
    Mutant(
        "memory of a slice is used again before the host has emptied it",
        "src/hierarchical/inter_host_call.cpp",
        "(task_.output_is_taken ? released_ : executor_->done()) + task_.output.buffer.slices",
        "task_.slices()",
    ),
    Mutant(
        "partials are written over those that are still to be sent",
        "src/hierarchical/relay.cpp",
        "return inter_host_call.done(slice + 1 - staged);",
        "return context_.lane.published(context_.lane.rank(), context_.number);",
    ),
    Mutant(
        "a host's result goes down before it is there",
        "src/hierarchical/relay.cpp",
        "if (kind() == RoundKind::down) return inter_host_call.received(slice + 1);",
        "",
    ),
    Mutant(
        "a left-over rank returns before its host has heard of the others",
        "src/hierarchical/relay_rounds.cpp",
        ".closes = facts.ranks > facts.columns,",
        ".closes = false,",
    ),
    Mutant(
        "blocks of left-over ranks are counted from the wrong place",
        "src/hierarchical/relay_context.cpp",
        "columns().local_of(rank) / columns().columns();",
        "columns().local_of(rank) % columns().columns();",
    ),
    Mutant(
        "an average between hosts is of the hosts",
        "src/hierarchical/wire_sides.cpp",
        "static_cast<uint64_t>(columns.ranks())",
        "static_cast<uint64_t>(columns.hosts())",
    ),
    # Init of many ranks.
    Mutant(
        "a collector tells nobody that a rank of its host is gone",
        "src/bootstrap/collector.cpp",
        "    parent_.queue({client->rank(), Gone{pumped.error().message}});\n",
        "",
        suspect="bootstrap",
    ),
    Mutant(
        "a collector does not say again at its place what it has said to the root",
        "src/bootstrap/upward.cpp",
        "  queued_.insert(queued_.begin(), std::make_move_iterator(said_.begin()), "
        "std::make_move_iterator(said_.end()));\n",
        "",
        suspect="bootstrap",
    ),
    Mutant(
        "every collector is a child of the root",
        "src/bootstrap/collector_tree.cpp",
        "children_ >= kMostChildren && !collects.is_astray",
        "children_ < 0",
        suspect="bootstrap",
    ),
]
