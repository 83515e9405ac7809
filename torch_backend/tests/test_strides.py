"""Tensors of any strides, on one rank or on all: right values, strides as before, untouched gaps."""

import pytest
import torch
import torch.distributed as dist
from ranks import assert_same, numbers, poisoned, run_ranks

SHAPE = (2, 3, 40, 50)
ELEMENTS = 12_000


def transposed(tensor):
    return tensor.new_empty(tensor.shape[::-1]).permute(3, 2, 1, 0).copy_(tensor)


def with_gaps(tensor):
    wide = poisoned(2 * tensor.numel(), tensor.dtype).view(*tensor.shape[:-1], 2 * tensor.shape[-1])
    return wide[..., ::2].copy_(tensor)


def channels_last(tensor):
    return tensor.contiguous(memory_format=torch.channels_last)


LAYOUTS = {"plain": torch.clone, "transposed": transposed, "gaps": with_gaps, "channels_last": channels_last}
STRIDED = [name for name in LAYOUTS if name != "plain"]
everywhere = pytest.mark.parametrize("blocking", [True, False], ids=["blocking", "async"])
strided = pytest.mark.parametrize("layout", STRIDED)


def mine(iteration=0, rank=None):
    return numbers(dist.get_rank() if rank is None else rank, ELEMENTS, torch.float32, iteration).view(SHAPE)


def all_of(iteration=0):
    return [mine(iteration, rank) for rank in range(dist.get_world_size())]


def empty(layout, shape=SHAPE):
    return LAYOUTS[layout](poisoned(torch.Size(shape).numel(), torch.float32).view(shape))


class Call:
    """Makes calls and checks what they have left when they are done: values, strides, and the gaps."""

    def __init__(self, blocking):
        self.blocking = blocking

    def __call__(self, collective, *arguments, results, expected, **options):
        before = [(tensor.stride(), tensor.data_ptr()) for tensor in results]
        work = collective(*arguments, async_op=not self.blocking, **options)
        if not self.blocking:
            work.wait()
        for tensor, wanted, (strides, place) in zip(results, expected, before, strict=True):
            assert (tensor.stride(), tensor.data_ptr()) == (strides, place)
            assert_same(tensor, wanted, (collective.__name__, strides))
            assert_gaps_are_as_they_were(tensor)


def assert_gaps_are_as_they_were(tensor):
    if tensor.stride(-1) == 2:
        base = tensor.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset() + 1)
        assert_same(base, poisoned(tensor.numel(), tensor.dtype).view(tensor.shape), "between the elements")


def at_root(layout, root=1):
    """The layout on the root, and plain on the others."""
    return layout if dist.get_rank() == root else "plain"


def use_on_the_root_alone(layout, blocking):
    call, rank, size = Call(blocking), dist.get_rank(), dist.get_world_size()
    is_root = rank == 1
    tensor = LAYOUTS[layout](mine()) if is_root else empty("plain")
    call(dist.broadcast, tensor, src=1, results=[tensor], expected=[mine(rank=1)])
    tensor = LAYOUTS[at_root(layout)](mine(1))
    total = sum(all_of(1))
    call(dist.reduce, tensor, dst=1, results=[tensor], expected=[total if is_root else mine(1)])
    tensor = LAYOUTS[at_root(layout)](mine(2))
    outputs = [empty(layout) for _ in range(size)] if is_root else []
    call(dist.gather, tensor, outputs or None, dst=1, results=outputs, expected=all_of(2) if is_root else [])
    inputs = [LAYOUTS[layout](part) for part in all_of(3)] if is_root else None
    output = empty(at_root(layout))
    call(dist.scatter, output, inputs, src=1, results=[output], expected=[mine(3)])


@pytest.mark.two_hosts
@everywhere
@strided
def test_the_root_alone_may_have_other_strides(layout, blocking):
    run_ranks(3, use_on_the_root_alone, layout, blocking)


def use_on_all_but_the_root(layout, blocking):
    call, rank, size = Call(blocking), dist.get_rank(), dist.get_world_size()
    others = "plain" if rank == 1 else layout
    tensor = mine() if rank == 1 else empty(layout)
    call(dist.broadcast, tensor, src=1, results=[tensor], expected=[mine(rank=1)])
    tensor = LAYOUTS[others](mine(1))
    call(dist.reduce, tensor, dst=1, results=[tensor], expected=[sum(all_of(1)) if rank == 1 else mine(1)])
    outputs = [empty("plain") for _ in range(size)] if rank == 1 else []
    tensor = LAYOUTS[others](mine(2))
    call(dist.gather, tensor, outputs or None, dst=1, results=outputs, expected=all_of(2) if outputs else [])
    output = empty(others)
    call(dist.scatter, output, all_of(3) if rank == 1 else None, src=1, results=[output], expected=[mine(3)])


@everywhere
@strided
def test_all_but_the_root_may_have_other_strides(layout, blocking):
    run_ranks(3, use_on_all_but_the_root, layout, blocking)


def use_on_all_ranks(layout, blocking):
    call, rank, size = Call(blocking), dist.get_rank(), dist.get_world_size()
    total = sum(all_of())
    tensor = LAYOUTS[layout](mine())
    call(dist.all_reduce, tensor, results=[tensor], expected=[total])
    outputs = [empty(layout) for _ in range(size)]
    call(dist.all_gather, outputs, LAYOUTS[layout](mine(1)), results=outputs, expected=all_of(1))
    whole = empty(layout, (size * SHAPE[0], *SHAPE[1:]))
    gathered = torch.cat(all_of(2))
    call(
        dist.all_gather_into_tensor,
        whole,
        LAYOUTS[layout](mine(2)),
        results=[whole],
        expected=[gathered],
    )
    inputs = [LAYOUTS[layout](mine(peer)) for peer in range(size)]
    output = empty(layout)
    call(dist.reduce_scatter, output, inputs, results=[output], expected=[sum(all_of(rank))])
    whole = LAYOUTS[layout](torch.cat([mine(peer) for peer in range(size)]))
    output = empty(layout)
    call(dist.reduce_scatter_tensor, output, whole, results=[output], expected=[sum(all_of(rank))])


@pytest.mark.two_hosts
@everywhere
@strided
def test_all_ranks_may_have_other_strides(layout, blocking):
    run_ranks(3, use_on_all_ranks, layout, blocking)


def use_a_layout_of_its_own_on_each_rank():
    layout = list(LAYOUTS)[dist.get_rank()]
    tensor = LAYOUTS[layout](mine())
    Call(blocking=True)(dist.all_reduce, tensor, results=[tensor], expected=[sum(all_of())])


def test_each_rank_may_have_strides_of_its_own():
    run_ranks(4, use_a_layout_of_its_own_on_each_rank)


def coalesce_strided(blocking):
    rank, size = dist.get_rank(), dist.get_world_size()
    tensors = [LAYOUTS[layout](mine(i)) for i, layout in enumerate(LAYOUTS)]
    with dist._coalescing_manager(async_ops=not blocking) as reducing:
        for tensor in tensors:
            dist.all_reduce(tensor)
    outputs = [empty(layout, (size * SHAPE[0], *SHAPE[1:])) for layout in LAYOUTS]
    with dist._coalescing_manager(async_ops=not blocking) as gathering:
        for i, (output, layout) in enumerate(zip(outputs, LAYOUTS, strict=True)):
            dist.all_gather_into_tensor(output, LAYOUTS[layout](mine(i)))
    parts = [empty(layout) for layout in LAYOUTS]
    with dist._coalescing_manager(async_ops=not blocking) as scattering:
        for i, (part, layout) in enumerate(zip(parts, LAYOUTS, strict=True)):
            whole = torch.cat([mine(i + peer) for peer in range(size)])
            dist.reduce_scatter_tensor(part, LAYOUTS[layout](whole))
    for manager in (reducing, gathering, scattering):
        if not blocking:
            manager.wait()
    for i in range(len(LAYOUTS)):
        assert_same(tensors[i], sum(all_of(i)), ("all_reduce", i))
        assert_same(outputs[i], torch.cat(all_of(i)), ("all_gather", i))
        assert_same(parts[i], sum(all_of(i + rank)), ("reduce_scatter", i))


@everywhere
def test_coalesced_calls_take_tensors_of_different_strides(blocking):
    run_ranks(3, coalesce_strided, blocking)


def reduce_twice_without_waiting(then_blocking):
    tensor = with_gaps(mine())
    work = dist.all_reduce(tensor, async_op=True)
    if then_blocking:
        dist.all_reduce(tensor)
    else:
        dist.all_reduce(tensor, async_op=True).wait()
    work.wait()
    assert_same(tensor, sum(all_of()) * dist.get_world_size())


@pytest.mark.parametrize("then_blocking", [False, True])
def test_a_strided_tensor_is_read_in_the_turn_of_its_call(then_blocking):
    run_ranks(3, reduce_twice_without_waiting, then_blocking)


def reduce_a_part_and_then_the_whole():
    rank, size = dist.get_rank(), dist.get_world_size()
    for iteration in range(5):
        inputs = [numbers(peer, 4_000_000, torch.float32, iteration).view(1000, 4000) for peer in range(size)]
        expected = sum(inputs)
        expected[:, ::2] *= size
        tensor = inputs[rank].clone()
        work = dist.all_reduce(tensor[:, ::2], async_op=True)
        dist.all_reduce(tensor)
        assert_same(tensor, expected, iteration)
        work.wait()
        assert_same(tensor, expected, (iteration, "after the wait"))


def test_a_blocking_call_runs_after_the_copies_of_the_async_calls_before_it():
    run_ranks(2, reduce_a_part_and_then_the_whole)


def drop_strided_inputs():
    size = dist.get_world_size()
    outputs = [[empty("gaps") for _ in range(size)] for _ in range(5)]
    for i, output in enumerate(outputs):
        dist.all_gather(output, transposed(mine(i)), async_op=True)
    dist.barrier()
    for i, output in enumerate(outputs):
        for tensor, part in zip(output, all_of(i), strict=True):
            assert_same(tensor, part, i)


def test_strided_inputs_may_be_dropped_before_their_call_is_done():
    run_ranks(3, drop_strided_inputs)


def find_results_in_the_work():
    tensor = transposed(mine())
    work = dist.all_reduce(tensor, async_op=True)
    (value,) = work.get_future().wait()
    assert (value.data_ptr(), value.stride()) == (tensor.data_ptr(), tensor.stride())
    assert_same(value, sum(all_of()))


def test_the_future_of_a_strided_call_holds_the_tensor_itself():
    run_ranks(2, find_results_in_the_work)


def move_every_size_of_element():
    for dtype in (torch.bool, torch.uint8, torch.bfloat16, torch.int32, torch.float64, torch.complex128):
        for count in (0, 1, 7):
            expected = numbers(0, 3 * count, dtype).view(3, count)
            ours = torch.stack([expected, expected], -1)[..., 0]
            tensor = ours if dist.get_rank() == 0 else poisoned(3 * count, dtype).view(count, 3).t()
            dist.broadcast(tensor, src=0)
            assert_same(tensor, expected, (dtype, count))


def test_elements_of_every_size_are_moved_between_strides():
    run_ranks(2, move_every_size_of_element)


def reduce_expanded():
    tensor = torch.tensor([[1.0], [2.0]]) + dist.get_rank()
    expanded = tensor.expand(2, 5)
    dist.all_reduce(expanded)
    assert_same(tensor, torch.tensor([[3.0], [5.0]]))


def test_elements_that_share_memory_get_one_value():
    run_ranks(2, reduce_expanded)
