"""Each collective gives what its definition says, for every type, odd and zero sizes, in place and beside."""

import functools
import itertools

import pytest
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
from ranks import assert_same, host_of, numbers, poisoned, run_ranks

INTEGERS = [getattr(torch, f"{sign}int{width}") for sign in ("", "u") for width in (8, 16, 32, 64)]
NARROW = [torch.float8_e4m3fn, torch.float8_e5m2, torch.bfloat16, torch.float16]
SUMMABLE = [*INTEGERS, *NARROW, torch.float32, torch.float64]
MOVABLE = [*SUMMABLE, torch.bool, torch.complex64]
COUNTS = [0, 1, 7, 1000, 70_001]


def cases(dtypes):
    return itertools.product(dtypes, COUNTS)


def inputs_of_all(count, dtype):
    return [numbers(rank, count, dtype) for rank in range(dist.get_world_size())]


def widened(tensor):
    """In the type that the library computes in; whole numbers in one that holds what wraps in theirs."""
    if tensor.dtype in (torch.float64, torch.uint64):
        return tensor.view(torch.int64) if tensor.dtype == torch.uint64 else tensor
    return tensor.to(torch.float32 if tensor.is_floating_point() else torch.int64)


def narrowed(wide, dtype):
    return wide.view(torch.uint64) if dtype == torch.uint64 else wide.to(dtype)


def merged(wide, merge, dtype):
    """All hosts' partials, each rounded to the type in which it travels; not yet rounded themselves."""
    by_host = itertools.groupby(range(len(wide)), lambda rank: host_of(rank, len(wide)))
    # Not torch.sum, which begins with a zero of its own: -0 and -0 would be +0.
    partials = [functools.reduce(merge, [wide[rank] for rank in ranks]) for _, ranks in by_host]
    if len(partials) > 1:
        partials = [widened(narrowed(partial, dtype)) for partial in partials]
    return functools.reduce(merge, partials)


def reduced(tensors, op):
    """The result that the library promises: a wide type, rounded once on a host and once between hosts.

    Averages of whole numbers are cut.
    """
    dtype = tensors[0].dtype
    wide = [widened(tensor) for tensor in tensors]
    merges = {"MIN": torch.minimum, "MAX": torch.maximum, "PRODUCT": torch.mul}
    merge = next((merges[name] for name in merges if op == OPERATORS[name]), torch.add)
    total = merged(wide, merge, dtype)
    if op == dist.ReduceOp.AVG and dtype.is_floating_point:
        total = total / len(tensors)
    elif op == dist.ReduceOp.AVG:
        # The sum wraps first.
        total = widened(narrowed(total, dtype)).div(len(tensors), rounding_mode="trunc")
    return narrowed(total, dtype)


OPERATORS = {op: getattr(dist.ReduceOp, op) for op in ("SUM", "PRODUCT", "AVG", "MIN", "MAX")}


def reduce_everywhere(op):
    for dtype, count in cases(SUMMABLE):
        tensor = numbers(dist.get_rank(), count, dtype)
        dist.all_reduce(tensor, op=OPERATORS[op])
        assert_same(tensor, reduced(inputs_of_all(count, dtype), OPERATORS[op]), (op, dtype, count))


@pytest.mark.parametrize("op", OPERATORS)
def test_all_reduce_gives_every_rank_the_reduction(op):
    run_ranks(3, reduce_everywhere, op)


def add_every_pair_of_8_bit_floats():
    patterns = torch.arange(256, dtype=torch.uint8)
    mine = [patterns.repeat_interleave(256), patterns.repeat(256)]
    for dtype, (name, op) in itertools.product((torch.float8_e4m3fn, torch.float8_e5m2), OPERATORS.items()):
        tensors = [pattern.view(dtype) for pattern in mine]
        expected = reduced(tensors, op)
        # The library's one NaN has no sign, and older versions of torch let e4m3 overflow to NaN.
        mere_nan = torch.stack([tensor.float().isnan() for tensor in tensors]).any(0)
        is_nan, bits = expected.float().isnan(), expected.view(torch.uint8)
        too_large = is_nan & ~mere_nan if dtype == torch.float8_e4m3fn else torch.zeros_like(is_nan)
        expected = torch.where(too_large, bits - 1, torch.where(is_nan, 0x7F, bits).to(torch.uint8))
        tensor = tensors[dist.get_rank()].clone()
        dist.all_reduce(tensor, op=op)
        if name in ("MIN", "MAX"):
            # The library keeps the lower rank's zero when it meets -0 and +0.
            zeros = (mine[0] & 0x7F == 0) & (mine[1] & 0x7F == 0)
            expected = torch.where(zeros, mine[0], expected)
        assert_same(tensor.view(torch.uint8), expected, (dtype, name))


def test_8_bit_floats_round_as_torch_rounds_them():
    run_ranks(2, add_every_pair_of_8_bit_floats)


def reduce_truth_values():
    rank, size = dist.get_rank(), dist.get_world_size()
    values = [torch.tensor([peer == 1, True, False, peer != 1]) for peer in range(size)]
    either, both = torch.stack(values).any(0), torch.stack(values).all(0)
    expected = {"SUM": either, "MAX": either, "BOR": either, "PRODUCT": both, "MIN": both, "BAND": both}
    expected["BXOR"] = torch.stack(values).sum(0) % 2 == 1
    for name, result in expected.items():
        tensor = values[rank].clone()
        dist.all_reduce(tensor, op=getattr(dist.ReduceOp, name))
        assert_same(tensor, result, name)


def test_truth_values_are_joined_by_or_and_and():
    run_ranks(3, reduce_truth_values)


def reduce_with_subnormals_flushed():
    torch.set_flush_denormal(True)
    smallest = torch.tensor([1, 1], dtype=torch.int32)
    tensor = smallest.clone().view(torch.float32)
    dist.all_reduce(tensor)
    assert_same(tensor.view(torch.int32), smallest * dist.get_world_size())


def test_sums_keep_subnormals_whatever_torch_has_set():
    run_ranks(2, reduce_with_subnormals_flushed)


def reduce_to_each_root():
    for root, (dtype, count) in itertools.product(range(3), cases(SUMMABLE)):
        tensor = numbers(dist.get_rank(), count, dtype)
        dist.reduce(tensor, dst=root)
        mine = dist.get_rank() == root
        expected = (
            reduced(inputs_of_all(count, dtype), dist.ReduceOp.SUM)
            if mine
            else numbers(dist.get_rank(), count, dtype)
        )
        assert_same(tensor, expected, (root, dtype, count))


@pytest.mark.two_hosts
def test_reduce_gives_the_root_the_sum_and_leaves_the_others_alone():
    run_ranks(3, reduce_to_each_root)


def multiply_before_sum():
    rank, size = dist.get_rank(), dist.get_world_size()
    for factor, dtype in itertools.product((0.5, torch.tensor(2.0)), SUMMABLE):
        if factor == 0.5 and not dtype.is_floating_point:
            continue
        op = dist._make_nccl_premul_sum(factor)
        scale = float(factor) if dtype.is_floating_point else int(factor)
        scaled = [widened(part) * scale for part in inputs_of_all(6 * size, dtype)]
        expected = narrowed(merged(scaled, torch.add, dtype), dtype)
        tensor = numbers(rank, 6 * size, dtype)
        output = poisoned(6, dtype)
        dist.reduce_scatter_tensor(output, tensor, op=op)
        assert_same(output, expected.chunk(size)[rank], (factor, dtype))
        work = dist.all_reduce(tensor, op=op, async_op=True)
        work.wait()
        assert_same(tensor, expected, (factor, dtype))


@pytest.mark.two_hosts
def test_a_pre_multiplied_sum_scales_each_input_first():
    run_ranks(3, multiply_before_sum)


def add_complex_numbers():
    rank, size = dist.get_rank(), dist.get_world_size()
    halves = {torch.complex32: torch.float16, torch.complex64: torch.float32, torch.complex128: torch.float64}
    for op, (dtype, real) in itertools.product((dist.ReduceOp.SUM, dist.ReduceOp.AVG), halves.items()):
        parts = [numbers(peer, 2 * 9 * size, real) for peer in range(size)]
        expected = reduced(parts, op).view(dtype)
        tensor = parts[rank].clone().view(dtype)
        dist.all_reduce(tensor, op=op)
        assert_same(tensor, expected, ("all_reduce", op, dtype))
        tensor = parts[rank].clone().view(dtype)
        dist.reduce(tensor, dst=1, op=op)
        assert_same(tensor, expected if rank == 1 else parts[rank].view(dtype), ("reduce", op, dtype))
        output = poisoned(9, dtype)
        dist.reduce_scatter_tensor(output, parts[rank].view(dtype), op=op)
        assert_same(output, expected.chunk(size)[rank], ("reduce_scatter_tensor", op, dtype))
        output = poisoned(9, dtype)
        dist.reduce_scatter(output, list(parts[rank].view(dtype).chunk(size)), op=op)
        assert_same(output, expected.chunk(size)[rank], ("reduce_scatter", op, dtype))
    tensor = numbers(rank, 20, torch.float32).view(torch.complex64)
    dist.all_reduce(tensor, op=dist._make_nccl_premul_sum(2.0))
    doubled = [2 * numbers(peer, 20, torch.float32) for peer in range(size)]
    assert_same(tensor, sum(doubled).view(torch.complex64), "PREMUL_SUM")


def test_complex_numbers_are_added_by_their_parts():
    run_ranks(3, add_complex_numbers)


def broadcast_from_each_root():
    for root, (dtype, count) in itertools.product(range(3), cases(MOVABLE)):
        mine = dist.get_rank() == root
        tensor = numbers(root, count, dtype) if mine else poisoned(count, dtype)
        dist.broadcast(tensor, src=root)
        assert_same(tensor, numbers(root, count, dtype), (root, dtype, count))


@pytest.mark.two_hosts
def test_broadcast_moves_every_type_from_every_root():
    run_ranks(3, broadcast_from_each_root)


def gather_lists():
    rank, size = dist.get_rank(), dist.get_world_size()
    for dtype, count in cases(MOVABLE):
        expected = inputs_of_all(count, dtype)
        outputs = [poisoned(count, dtype) for _ in range(size)]
        dist.all_gather(outputs, expected[rank])
        for output, part in zip(outputs, expected, strict=True):
            assert_same(output, part, (dtype, count))


def test_all_gather_fills_a_list_of_separate_tensors():
    run_ranks(3, gather_lists)


def gather_into_chunks():
    rank, size = dist.get_rank(), dist.get_world_size()
    expected = torch.cat(inputs_of_all(5, torch.float32))
    whole = poisoned(5 * size, torch.float32)
    dist.all_gather(list(whole.chunk(size)), numbers(rank, 5, torch.float32))
    assert_same(whole, expected, "beside")
    whole = poisoned(5 * size, torch.float32)
    whole.chunk(size)[rank].copy_(numbers(rank, 5, torch.float32))
    dist.all_gather(list(whole.chunk(size)), whole.chunk(size)[rank])
    assert_same(whole, expected, "in place")
    whole = poisoned(5 * size, torch.float32)
    elsewhere = whole[3:8]
    elsewhere.copy_(numbers(rank, 5, torch.float32))
    dist.all_gather(list(whole.chunk(size)), elsewhere)
    assert_same(whole, expected, "overlapping at another place")


def test_all_gather_fills_chunks_of_one_buffer_whatever_the_input_overlaps():
    run_ranks(3, gather_into_chunks)


def gather_into_one_tensor_for_all():
    rank, size = dist.get_rank(), dist.get_world_size()
    output = poisoned(4, torch.int64)
    dist.all_gather([output] * size, numbers(rank, 4, torch.int64))
    assert_same(output, numbers(size - 1, 4, torch.int64))


def test_all_gather_into_the_same_tensor_for_every_rank_keeps_the_last():
    run_ranks(3, gather_into_one_tensor_for_all)


def gather_into_tensor():
    rank, size = dist.get_rank(), dist.get_world_size()
    for dtype, count in cases(MOVABLE):
        expected = torch.cat(inputs_of_all(count, dtype))
        output = poisoned(count * size, dtype)
        dist.all_gather_into_tensor(output, numbers(rank, count, dtype))
        assert_same(output, expected, (dtype, count))
        output = poisoned(count * size, dtype)
        place = output[rank * count : (rank + 1) * count]
        place.copy_(numbers(rank, count, dtype))
        dist.all_gather_into_tensor(output, place)
        assert_same(output, expected, (dtype, count, "in place"))


@pytest.mark.two_hosts
def test_all_gather_into_tensor_works_beside_and_in_place():
    run_ranks(3, gather_into_tensor)


def use_misaligned_tensors():
    rank, size = dist.get_rank(), dist.get_world_size()
    buffer = poisoned(9 * size + 9 + 3, torch.bfloat16)
    output, part = buffer[1 : 1 + 9 * size], buffer[2 + 9 * size : 11 + 9 * size]
    part.copy_(numbers(rank, 9, torch.bfloat16))
    dist.all_gather_into_tensor(output, part)
    assert_same(output, torch.cat(inputs_of_all(9, torch.bfloat16)))
    dist.all_reduce(output, op=dist.ReduceOp.MAX)
    assert_same(output, torch.cat(inputs_of_all(9, torch.bfloat16)))
    assert torch.equal(buffer[:1], poisoned(1, torch.bfloat16)), "wrote before the output"


def test_tensors_may_begin_anywhere():
    run_ranks(3, use_misaligned_tensors)


def reduce_scatter_tensors(op):
    rank, size = dist.get_rank(), dist.get_world_size()
    for dtype, count in cases(SUMMABLE):
        expected = reduced(inputs_of_all(count * size, dtype), OPERATORS[op])[
            rank * count : (rank + 1) * count
        ]
        output = poisoned(count, dtype)
        dist.reduce_scatter_tensor(output, numbers(rank, count * size, dtype), op=OPERATORS[op])
        assert_same(output, expected, (dtype, count))
        whole = numbers(rank, count * size, dtype)
        place = whole[rank * count : (rank + 1) * count]
        dist.reduce_scatter_tensor(place, whole, op=OPERATORS[op])
        assert_same(place, expected, (dtype, count, "in place"))


@pytest.mark.parametrize("op", OPERATORS)
def test_reduce_scatter_tensor_gives_each_rank_its_part(op):
    run_ranks(3, reduce_scatter_tensors, op)


def reduce_scatter_lists():
    rank, size = dist.get_rank(), dist.get_world_size()
    for dtype, count in cases(SUMMABLE):
        expected = reduced(inputs_of_all(count * size, dtype), dist.ReduceOp.SUM)[
            rank * count : (rank + 1) * count
        ]
        parts = numbers(rank, count * size, dtype)
        inputs = [parts[peer * count : (peer + 1) * count].clone() for peer in range(size)]
        output = poisoned(count, dtype)
        dist.reduce_scatter(output, inputs)
        assert_same(output, expected, (dtype, count))
    whole = numbers(rank, 5 * size, torch.float32)
    overlapping = whole[2:7]
    dist.reduce_scatter(overlapping, list(whole.chunk(size)))
    expected = reduced(inputs_of_all(5 * size, torch.float32), dist.ReduceOp.SUM)[rank * 5 : (rank + 1) * 5]
    assert_same(overlapping, expected, "output overlaps the input")


@pytest.mark.two_hosts
def test_reduce_scatter_takes_a_list_whatever_the_output_overlaps():
    run_ranks(3, reduce_scatter_lists)


def gather_to_each_root():
    rank, size = dist.get_rank(), dist.get_world_size()
    for root, (dtype, count) in itertools.product(range(size), cases(MOVABLE)):
        outputs = [poisoned(count, dtype) for _ in range(size)] if rank == root else None
        dist.gather(numbers(rank, count, dtype), outputs, dst=root)
        if rank == root:
            for output, part in zip(outputs, inputs_of_all(count, dtype), strict=True):
                assert_same(output, part, (root, dtype, count))


def test_gather_fills_the_list_of_the_root():
    run_ranks(3, gather_to_each_root)


def scatter_from_each_root():
    rank, size = dist.get_rank(), dist.get_world_size()
    for root, (dtype, count) in itertools.product(range(size), cases(MOVABLE)):
        output = poisoned(count, dtype)
        dist.scatter(output, inputs_of_all(count, dtype) if rank == root else None, src=root)
        assert_same(output, numbers(rank, count, dtype), (root, dtype, count))


def test_scatter_gives_each_rank_its_tensor_of_the_root():
    run_ranks(3, scatter_from_each_root)


def coalesce():
    rank, size = dist.get_rank(), dist.get_world_size()
    counts = (3, 0, 70_001)
    summed = [numbers(rank, count, torch.float32) for count in counts]
    with dist._coalescing_manager():
        for tensor in summed:
            dist.all_reduce(tensor)
    outputs = [poisoned(count * size, torch.int32) for count in counts]
    with dist._coalescing_manager(async_ops=True) as manager:
        for output, count in zip(outputs, counts, strict=True):
            dist.all_gather_into_tensor(output, numbers(rank, count, torch.int32))
    manager.wait()
    parts = [poisoned(count, torch.float64) for count in counts]
    with dist._coalescing_manager():
        for part, count in zip(parts, counts, strict=True):
            dist.reduce_scatter_tensor(part, numbers(rank, count * size, torch.float64))
    for index, count in enumerate(counts):
        sum_of_parts = reduced(inputs_of_all(count * size, torch.float64), dist.ReduceOp.SUM)
        assert_same(summed[index], reduced(inputs_of_all(count, torch.float32), dist.ReduceOp.SUM), count)
        assert_same(outputs[index], torch.cat(inputs_of_all(count, torch.int32)), count)
        assert_same(parts[index], sum_of_parts[rank * count : (rank + 1) * count], count)


@pytest.mark.two_hosts
def test_coalesced_calls_give_each_tensor_its_result():
    run_ranks(3, coalesce)


def gather_coalesced_lists():
    rank, size = dist.get_rank(), dist.get_world_size()
    outputs = [[poisoned(3, torch.float32), poisoned(8, torch.float32)] for _ in range(size)]
    dist.all_gather_coalesced(outputs, [numbers(rank, 3, torch.float32), numbers(rank, 8, torch.float32)])
    for peer, (short, long) in enumerate(outputs):
        assert_same(short, numbers(peer, 3, torch.float32))
        assert_same(long, numbers(peer, 8, torch.float32))


def test_all_gather_coalesced_fills_the_lists_of_all_ranks():
    run_ranks(3, gather_coalesced_lists)


def call_functional():
    rank, size = dist.get_rank(), dist.get_world_size()
    group = dist.group.WORLD
    mine = numbers(rank, 6, torch.float32)
    total = reduced(inputs_of_all(6, torch.float32), dist.ReduceOp.SUM)
    assert_same(functional.all_reduce(mine, "sum", group).wait(), total)
    gathered = functional.all_gather_tensor(mine, 0, group).wait()
    assert_same(gathered, torch.cat(inputs_of_all(6, torch.float32)))
    part = functional.reduce_scatter_tensor(mine, "sum", 0, group).wait()
    assert_same(part, total.chunk(size)[rank])
    assert_same(functional.broadcast(mine, 1, group).wait(), numbers(1, 6, torch.float32))


@pytest.mark.two_hosts(every_change=True)
def test_functional_collectives_work():
    run_ranks(3, call_functional)


def exchange_objects():
    rank, size = dist.get_rank(), dist.get_world_size()
    mine = {"rank": rank, "text": "x" * rank}
    everything = [{"rank": peer, "text": "x" * peer} for peer in range(size)]
    gathered = [None] * size
    dist.all_gather_object(gathered, mine)
    assert gathered == everything
    at_root = [None] * size if rank == 1 else None
    dist.gather_object(mine, at_root, dst=1)
    assert at_root == (everything if rank == 1 else None)
    said = [mine if rank == 2 else None]
    dist.broadcast_object_list(said, src=2)
    assert said == [everything[2]]
    got = [None]
    dist.scatter_object_list(got, everything if rank == 0 else None, src=0)
    assert got == [mine]


@pytest.mark.two_hosts
def test_object_collectives_work():
    run_ranks(3, exchange_objects)
