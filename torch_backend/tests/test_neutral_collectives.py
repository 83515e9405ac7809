"""Collectives as torch 2.15's test_c10d_collectives asks them of every backend.

torch's wheel does not have that suite; these tests ask the same: each type and operator, no elements and
some, blocking and asynchronous, in every form.
docs/reference/torch.md has what it asks and fccl does otherwise.
"""

import functools
import itertools
import warnings

import pytest
import torch
import torch.distributed as dist
from cases import failures_of
from ranks import assert_same, numbers, poisoned
from test_collectives import OPERATORS, reduced

COUNTS = (0, 4)
FLOATS = (torch.float16, torch.float32, torch.float64, torch.bfloat16)
WHOLE = (torch.int8, torch.uint8, torch.int32, torch.int64)
FLOAT8 = (torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz)
COMPLEX = (torch.complex64, torch.complex128)
MOVED = (*FLOATS, *WHOLE, torch.bool, *FLOAT8, *COMPLEX)
# The operators on truth values: "or", "and" and "an odd number of them".
OF_TRUTHS = {
    "SUM": any,
    "PRODUCT": all,
    "MIN": all,
    "MAX": any,
    "BOR": any,
    "BAND": all,
    "BXOR": lambda bits: sum(bits) % 2 == 1,
}
BITWISE = {"BAND": torch.bitwise_and, "BOR": torch.bitwise_or, "BXOR": torch.bitwise_xor}


def movements():
    """Each type, number of elements and kind of call, and what is different in each."""
    for index, case in enumerate(itertools.product(MOVED, COUNTS, (False, True))):
        yield *case, index


def reductions():
    """Each type, operator, number of elements and kind of call, and what is different in each."""
    of_numbers = itertools.product((*FLOATS, *WHOLE), OPERATORS)
    of_bits = itertools.product(WHOLE, BITWISE)
    of_truths = ((torch.bool, op) for op in OF_TRUTHS)
    # torch's suite takes averages of floats alone.
    asked = (
        case for case in (*of_numbers, *of_bits, *of_truths) if case[1] != "AVG" or case[0].is_floating_point
    )
    for index, ((dtype, op), count, later) in enumerate(itertools.product(asked, COUNTS, (False, True))):
        yield dtype, op, count, later, index


def of_all(count, dtype, iteration):
    return [small(rank, count, dtype, iteration) for rank in range(dist.get_world_size())]


def small(rank, count, dtype, iteration):
    """Numbers so small that even their products are exact in every type."""
    if dtype == torch.bool:
        return numbers(rank, count, dtype, iteration)
    return ((torch.arange(count) * 7 + rank * 13 + iteration * 5) % 3 + 1).to(dtype)


def reduction_of(tensors, op):
    if tensors[0].dtype != torch.bool:
        return functools.reduce(BITWISE[op], tensors) if op in BITWISE else reduced(tensors, OPERATORS[op])
    return torch.tensor(
        [OF_TRUTHS[op](bits) for bits in zip(*map(torch.Tensor.tolist, tensors), strict=True)]
    ).bool()


def finish(work, later):
    """A blocking call gives no work, an asynchronous one gives one to be waited for."""
    assert (work is not None) == later
    if later:
        work.wait()


def broadcast_moves_every_type():
    for dtype, count, later, index in movements():
        root = index % dist.get_world_size()
        mine = dist.get_rank() == root
        tensor = numbers(root, count, dtype, index) if mine else poisoned(count, dtype)
        finish(dist.broadcast(tensor, src=root, async_op=later), later)
        assert_same(tensor, numbers(root, count, dtype, index), (dtype, count, later))


def all_gather_moves_every_type():
    rank, size = dist.get_rank(), dist.get_world_size()
    for dtype, count, later, index in movements():
        expected = [numbers(each, count, dtype, index) for each in range(size)]
        outputs = [poisoned(count, dtype) for _ in range(size)]
        finish(dist.all_gather(outputs, expected[rank], async_op=later), later)
        assert_same(torch.cat(outputs), torch.cat(expected), (dtype, count, later))


def all_gather_single_moves_every_type():
    rank, size = dist.get_rank(), dist.get_world_size()
    gather = getattr(dist, "all_gather_single", dist.all_gather_into_tensor)
    for dtype, count, later, index in movements():
        expected = [numbers(each, count, dtype, index) for each in range(size)]
        whole = poisoned(count * size, dtype)
        finish(gather(whole, expected[rank], async_op=later), later)
        assert_same(whole, torch.cat(expected), (dtype, count, later))


def gather_moves_every_type():
    rank, size = dist.get_rank(), dist.get_world_size()
    for dtype, count, later, index in movements():
        root = index % size
        expected = [numbers(each, count, dtype, index) for each in range(size)]
        outputs = [poisoned(count, dtype) for _ in range(size)] if rank == root else None
        finish(dist.gather(expected[rank], outputs, dst=root, async_op=later), later)
        if rank == root:
            assert_same(torch.cat(outputs), torch.cat(expected), (dtype, count, later))


def gather_single_fills_rows_and_one_row():
    rank, size = dist.get_rank(), dist.get_world_size()
    for (dtype, count, later, index), in_rows in itertools.product(movements(), (False, True)):
        expected = torch.cat([numbers(each, count, dtype, index) for each in range(size)])
        whole = poisoned(count * size, dtype) if rank == 0 else None
        if rank == 0 and in_rows:
            whole = whole.view(size, count)
        finish(dist.gather_single(numbers(rank, count, dtype, index), whole, dst=0, async_op=later), later)
        if rank == 0:
            assert_same(whole.flatten(), expected, (dtype, count, later, in_rows))


def gather_single_refuses_another_size_at_the_root_alone():
    if dist.get_rank() == 0:
        with pytest.raises((RuntimeError, ValueError)):
            dist.gather_single(torch.ones(4), torch.empty(4), dst=0)
    dist.barrier()


def scatter_moves_every_type():
    rank, size = dist.get_rank(), dist.get_world_size()
    for dtype, count, later, index in movements():
        root = index % size
        inputs = [numbers(each, count, dtype, index) for each in range(size)]
        output = poisoned(count, dtype)
        finish(dist.scatter(output, inputs if rank == root else None, src=root, async_op=later), later)
        assert_same(output, inputs[rank], (dtype, count, later))


def all_to_all_moves_every_type():
    rank, size = dist.get_rank(), dist.get_world_size()
    for dtype, count, later, index in movements():
        inputs = [numbers(rank + 3 * each, count, dtype, index) for each in range(size)]
        outputs = [poisoned(count, dtype) for _ in range(size)]
        finish(dist.all_to_all(outputs, inputs, async_op=later), later)
        expected = [numbers(each + 3 * rank, count, dtype, index) for each in range(size)]
        assert_same(torch.cat(outputs), torch.cat(expected), (dtype, count, later))


def all_to_all_single_moves_every_type():
    rank, size = dist.get_rank(), dist.get_world_size()
    for dtype, count, later, index in movements():
        whole = torch.cat([numbers(rank + 3 * each, count, dtype, index) for each in range(size)])
        output = poisoned(count * size, dtype)
        finish(dist.all_to_all_single(output, whole, async_op=later), later)
        expected = [numbers(each + 3 * rank, count, dtype, index) for each in range(size)]
        assert_same(output, torch.cat(expected), (dtype, count, later))


def all_to_all_single_takes_sizes_of_its_parts():
    rank, size = dist.get_rank(), dist.get_world_size()
    for later in (False, True):
        sizes = [rank + each + 1 for each in range(size)]
        inputs = torch.cat([numbers(rank + 3 * each, sizes[each], torch.float32) for each in range(size)])
        output = poisoned(sum(sizes), torch.float32)
        work = dist.all_to_all_single(
            output, inputs, output_split_sizes=sizes, input_split_sizes=sizes, async_op=later
        )
        finish(work, later)
        expected = [numbers(each + 3 * rank, sizes[each], torch.float32) for each in range(size)]
        assert_same(output, torch.cat(expected), later)


def all_to_all_single_takes_strided_tensors():
    # torch's suite wants its own backends to refuse them.
    rank, size = dist.get_rank(), dist.get_world_size()
    strided = numbers(rank, size * size, torch.float32).view(size, size).t()
    output = poisoned(size * size, torch.float32).view(size, size)
    dist.all_to_all_single(output, strided)
    columns = [numbers(each, size * size, torch.float32).view(size, size)[:, rank] for each in range(size)]
    assert_same(output, torch.stack(columns))


def all_reduce_serves_every_type_and_operator():
    rank = dist.get_rank()
    for dtype, op, count, later, index in reductions():
        tensors = of_all(count, dtype, index)
        tensor = tensors[rank].clone()
        finish(dist.all_reduce(tensor, op=getattr(dist.ReduceOp, op), async_op=later), later)
        assert_same(tensor, reduction_of(tensors, op), (dtype, op, count, later))


def reduce_serves_every_type_and_operator():
    rank, size = dist.get_rank(), dist.get_world_size()
    for dtype, op, count, later, index in reductions():
        root, tensors = index % size, of_all(count, dtype, index)
        tensor = tensors[rank].clone()
        finish(dist.reduce(tensor, dst=root, op=getattr(dist.ReduceOp, op), async_op=later), later)
        if rank == root:
            assert_same(tensor, reduction_of(tensors, op), (dtype, op, count, later))


def reduce_scatter_serves_every_type_and_operator():
    rank, size = dist.get_rank(), dist.get_world_size()
    for dtype, op, count, later, index in reductions():
        whole = of_all(count * size, dtype, index)
        inputs, output = list(whole[rank].view(size, count)), poisoned(count, dtype)
        work = dist.reduce_scatter(output, inputs, op=getattr(dist.ReduceOp, op), async_op=later)
        finish(work, later)
        expected = reduction_of(whole, op).view(size, count)[rank]
        assert_same(output, expected, (dtype, op, count, later))


def reduce_scatter_single_serves_every_type_and_operator():
    rank, size = dist.get_rank(), dist.get_world_size()
    scatter = getattr(dist, "reduce_scatter_single", dist.reduce_scatter_tensor)
    for dtype, op, count, later, index in reductions():
        whole, output = of_all(count * size, dtype, index), poisoned(count, dtype)
        finish(scatter(output, whole[rank], op=getattr(dist.ReduceOp, op), async_op=later), later)
        expected = reduction_of(whole, op).view(size, count)[rank]
        assert_same(output, expected, (dtype, op, count, later))


def complex_numbers_are_broadcast_and_added():
    rank = dist.get_rank()
    for dtype, op, later in itertools.product(COMPLEX, ("SUM", "AVG"), (False, True)):
        parts = [
            numbers(each, 8, torch.zeros(0, dtype=dtype).real.dtype) for each in range(dist.get_world_size())
        ]
        expected = reduced(parts, OPERATORS[op]).view(dtype)
        tensor = parts[rank].clone().view(dtype)
        finish(dist.all_reduce(tensor, op=OPERATORS[op], async_op=later), later)
        assert_same(tensor, expected, (dtype, op, later))
        tensor = parts[rank].clone().view(dtype)
        finish(dist.reduce(tensor, dst=0, op=OPERATORS[op], async_op=later), later)
        if rank == 0:
            assert_same(tensor, expected, (dtype, op, later))


def all_reduce_coalesced_serves_every_type():
    rank = dist.get_rank()
    for dtype, later in itertools.product((*FLOATS, *WHOLE), (False, True)):
        tensors = [small(rank, count, dtype, count) for count in (1, 2, 3)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            finish(dist.all_reduce_coalesced(tensors, async_op=later), later)
        for count, tensor in zip((1, 2, 3), tensors, strict=True):
            assert_same(tensor, reduction_of(of_all(count, dtype, count), "SUM"), (dtype, later, count))


def a_coalescing_manager_has_one_work_if_any():
    rank, size = dist.get_rank(), dist.get_world_size()
    counts = (1, 2, 3)
    for later in (False, True):
        summed = [numbers(rank, count, torch.float32) for count in counts]
        gathered = [poisoned(count * size, torch.float32) for count in counts]
        parts = [poisoned(count, torch.float32) for count in counts]
        calls = (
            lambda i, to=summed: dist.all_reduce(to[i]),
            lambda i, to=gathered: dist.all_gather_into_tensor(
                to[i], numbers(rank, counts[i], torch.float32)
            ),
            lambda i, to=parts: dist.reduce_scatter_tensor(
                to[i], numbers(rank, size * counts[i], torch.float32)
            ),
        )
        for call in calls:
            with dist._coalescing_manager(device=torch.device("cpu"), async_ops=later) as manager:
                for index in range(len(counts)):
                    call(index)
            assert len(manager.works) == (1 if later else 0)
            manager.wait()
        for index, count in enumerate(counts):
            inputs = [numbers(each, count, torch.float32) for each in range(size)]
            wide = [numbers(each, size * count, torch.float32) for each in range(size)]
            assert_same(summed[index], reduced(inputs, OPERATORS["SUM"]), (later, count))
            assert_same(gathered[index], torch.cat(inputs), (later, count))
            assert_same(parts[index], reduced(wide, OPERATORS["SUM"]).view(size, count)[rank], (later, count))


def tensors_of_two_types_are_refused():
    size, errors = dist.get_world_size(), (RuntimeError, TypeError, ValueError)
    short, long = torch.ones(4), torch.empty(4 * size, dtype=torch.float64)
    for call in (
        lambda: dist.all_gather_into_tensor(long, short),
        lambda: dist.reduce_scatter_tensor(short, long),
        lambda: dist.all_to_all_single(long, short),
    ):
        with pytest.raises(errors):
            call()
    dist.barrier()


def barriers_are_blocking_and_asynchronous():
    for later in (False, True):
        finish(dist.barrier(async_op=later), later)


CASES = [
    broadcast_moves_every_type,
    all_gather_moves_every_type,
    all_gather_single_moves_every_type,
    gather_moves_every_type,
    scatter_moves_every_type,
    all_to_all_moves_every_type,
    all_to_all_single_moves_every_type,
    all_to_all_single_takes_sizes_of_its_parts,
    all_to_all_single_takes_strided_tensors,
    all_reduce_serves_every_type_and_operator,
    reduce_serves_every_type_and_operator,
    reduce_scatter_serves_every_type_and_operator,
    reduce_scatter_single_serves_every_type_and_operator,
    complex_numbers_are_broadcast_and_added,
    all_reduce_coalesced_serves_every_type,
    a_coalescing_manager_has_one_work_if_any,
    tensors_of_two_types_are_refused,
    barriers_are_blocking_and_asynchronous,
]
if hasattr(dist, "gather_single"):  # from torch 2.15 on
    CASES += [
        gather_single_fills_rows_and_one_row,
        gather_single_refuses_another_size_at_the_root_alone,
    ]


@pytest.fixture(scope="module")
def failures():
    return failures_of(3, CASES)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_in_any_type_and_form(case, failures):
    assert not failures[case.__name__], failures[case.__name__]
