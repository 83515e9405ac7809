"""Collectives on a device: on the current stream, beside it, and what their works and futures promise."""

import threading
import time
from datetime import timedelta

import pytest
import torch
import torch.distributed as dist
from device_ranks import DEVICE, hold, let_go, on_device, run_device_ranks, served
from ranks import assert_same, numbers, poisoned

pytestmark = served

COUNT = 1000


def mine(count=COUNT, iteration=0, dtype=torch.float32):
    return on_device(numbers(dist.get_rank(), count, dtype, iteration))


def empty(count=COUNT, dtype=torch.float32):
    return on_device(poisoned(count, dtype))


def of_all(count=COUNT, iteration=0, dtype=torch.float32):
    return [numbers(rank, count, dtype, iteration) for rank in range(dist.get_world_size())]


def total(count=COUNT, iteration=0):
    return sum(of_all(count, iteration))


def check(tensor, expected, what=""):
    assert tensor.device == DEVICE
    assert_same(tensor.cpu(), expected, what)


def call_everything(asynchronous):
    rank, size = dist.get_rank(), dist.get_world_size()

    def call(collective, *tensors, **options):
        work = collective(*tensors, async_op=asynchronous, **options)
        if asynchronous:
            work.wait()

    for iteration, count in enumerate((COUNT, 1, 0, 33_333)):
        parts, part = of_all(count, iteration), mine(count, iteration)
        whole, sums = torch.cat(parts), sum(parts)
        tensor = part.clone()
        call(dist.all_reduce, tensor)
        check(tensor, sums, "all_reduce")
        tensor = part.clone()
        call(dist.broadcast, tensor, src=1)
        check(tensor, parts[1], "broadcast")
        tensor = part.clone()
        call(dist.reduce, tensor, dst=size - 1)
        if rank == size - 1:
            check(tensor, sums, "reduce")
        tensor = empty(size * count)
        call(dist.all_gather_into_tensor, tensor, part)
        check(tensor, whole, "all_gather_into_tensor")
        tensors = [empty(count) for _ in range(size)]
        call(dist.all_gather, tensors, part)
        check(torch.cat(tensors), whole, "all_gather")
        tensor = empty(count)
        call(
            dist.reduce_scatter_tensor,
            tensor,
            on_device(torch.cat([(peer + 1) * sums for peer in range(size)])),
        )
        check(tensor, size * (rank + 1) * sums, "reduce_scatter_tensor")
        tensor = empty(count)
        call(dist.reduce_scatter, tensor, [(peer + 1) * part for peer in range(size)])
        check(tensor, (rank + 1) * sums, "reduce_scatter")
        tensors = [empty(count) for _ in range(size)]
        call(dist.gather, part, tensors if rank == 1 else None, dst=1)
        if rank == 1:
            check(torch.cat(tensors), whole, "gather")
        tensor = empty(count)
        call(dist.scatter, tensor, [part + peer for peer in range(size)] if rank == 0 else None, src=0)
        check(tensor, parts[0] + rank, "scatter")
        tensor = empty(size * count)
        call(dist.all_to_all_single, tensor, torch.cat([part + peer for peer in range(size)]))
        check(tensor, torch.cat([each + rank for each in parts]), "all_to_all_single")


@pytest.mark.parametrize("asynchronous", [False, True])
def test_every_collective_gives_on_a_device_what_it_gives_on_the_cpu(asynchronous):
    run_device_ranks(3, call_everything, asynchronous)


def use_strided_tensors(asynchronous):
    size = dist.get_world_size()
    for iteration in range(3):
        before = numbers(dist.get_rank(), 60, torch.float32, iteration).view(6, 10)
        tensor = on_device(before)
        work = dist.all_reduce(tensor[:, ::3], async_op=asynchronous)
        if asynchronous:
            work.wait()
        expected = before.clone()
        expected[:, ::3] = sum(part.view(6, 10)[:, ::3] for part in of_all(60, iteration))
        check(tensor, expected)
        gathered = [empty(60).view(10, 6) for _ in range(size)]
        dist.all_gather(gathered, on_device(before).t())
        for peer, part in enumerate(gathered):
            check(part, numbers(peer, 60, torch.float32, iteration).view(6, 10).t().contiguous())


@pytest.mark.parametrize("asynchronous", [False, True])
def test_tensors_of_any_strides_are_copied_on_the_stream_of_the_call(asynchronous):
    run_device_ranks(2, use_strided_tensors, asynchronous)


def write_into_shared_elements():
    shared = empty(1).expand(4)
    with pytest.raises(NotImplementedError, match="whose elements share memory"):
        dist.all_reduce(shared)
    tensor = mine()
    dist.all_reduce(tensor)
    check(tensor, total())


def test_an_output_whose_elements_share_memory_is_refused_before_anything_is_sent():
    run_device_ranks(2, write_into_shared_elements)


def scale_by_a_number_on_the_device():
    factor = on_device(torch.tensor(0.5 + dist.get_rank()))
    expected = sum((0.5 + rank) * part for rank, part in enumerate(of_all()))
    tensor = mine()
    dist.all_reduce(tensor, op=dist._make_nccl_premul_sum(factor))
    check(tensor, expected)
    tensor = mine()
    work = dist.all_reduce(tensor, op=dist._make_nccl_premul_sum(factor), async_op=True)
    del factor
    work.wait()
    check(tensor, expected)


def test_a_factor_on_the_device_is_read_there():
    run_device_ranks(2, scale_by_a_number_on_the_device)


def call_while_the_stream_is_held():
    tensor = mine()
    hold()
    began = time.monotonic()
    dist.all_reduce(tensor)
    dist.all_reduce(tensor)
    assert time.monotonic() - began < 10, "the call has waited"
    let_go()
    check(tensor, dist.get_world_size() * total())


def test_a_call_on_the_current_stream_does_not_wait_for_it():
    run_device_ranks(2, call_while_the_stream_is_held)


def leave_inputs_to_the_allocator():
    size = dist.get_world_size()
    for iteration in range(10):
        source = mine(iteration=iteration)
        gathered = empty(size * COUNT)
        hold()
        work = dist.all_gather_into_tensor(gathered, source, async_op=True)
        address = source.data_ptr()
        del source
        spoiled = [torch.empty(COUNT, device=DEVICE) for _ in range(5)]
        assert address not in [each.data_ptr() for each in spoiled], "the input's memory was handed out"
        assert not work.is_completed()
        let_go()
        work.wait()
        check(gathered, torch.cat(of_all(iteration=iteration)), iteration)
        del spoiled, work


def test_an_asynchronous_call_keeps_its_tensors_until_the_device_is_done():
    run_device_ranks(2, leave_inputs_to_the_allocator)


def wait_on_the_stream_of_the_call():
    source, gathered = mine(), empty(2 * COUNT)
    hold()
    work = dist.all_gather_into_tensor(gathered, source, async_op=True)
    address = source.data_ptr()
    del source
    work.wait()
    assert not work.is_completed()
    assert torch.empty(COUNT, device=DEVICE).data_ptr() == address
    let_go()
    torch.accelerator.synchronize()


def test_a_wait_on_the_stream_of_the_call_gives_the_memory_back_to_it_at_once():
    run_device_ranks(2, wait_on_the_stream_of_the_call)


def wait_on_another_stream():
    source, gathered = mine(), empty(2 * COUNT)
    address = source.data_ptr()
    hold()
    work = dist.all_gather_into_tensor(gathered, source, async_op=True)
    del source
    with torch.Stream(DEVICE):
        work.wait()
    assert torch.empty(COUNT, device=DEVICE).data_ptr() != address
    let_go()
    work.wait(timedelta(seconds=20))
    dist.all_reduce(mine())
    assert torch.empty(COUNT, device=DEVICE).data_ptr() == address


def test_a_wait_on_another_stream_leaves_the_memory_until_the_device_is_done():
    run_device_ranks(2, wait_on_another_stream)


def drop_works():
    for iteration in range(5):
        outputs = [empty(2 * COUNT) for _ in range(4)]
        for output in outputs:
            dist.all_gather_into_tensor(output, mine(iteration=iteration), async_op=True)
        dist.barrier()
        for output in outputs:
            check(output, torch.cat(of_all(iteration=iteration)))


def test_a_barrier_ends_the_calls_on_the_device_whose_works_were_dropped():
    run_device_ranks(2, drop_works)


def pass_a_barrier_when_the_device_has():
    tensor = mine()
    dist.broadcast(tensor, src=0)
    hold()
    threading.Timer(1.0, let_go).start()
    began = time.monotonic()
    dist.barrier()
    assert time.monotonic() - began > 0.8
    work = dist.barrier(async_op=True)
    work.wait()
    assert work.is_completed()
    check(tensor, numbers(0, COUNT, torch.float32))


def test_a_barrier_blocks_the_host_until_the_device_has_come_to_it():
    run_device_ranks(2, pass_a_barrier_when_the_device_has)


def wait_with_a_limit():
    tensor = mine()
    hold()
    work = dist.all_reduce(tensor, async_op=True)
    with pytest.raises(dist.DistBackendError, match="not done within the 300 ms given to wait"):
        work.wait(timedelta(milliseconds=300))
    assert not work.is_completed()
    let_go()
    assert work.wait(timedelta(seconds=20))
    assert work.is_completed() and work.is_success()
    check(tensor, total())


def test_a_wait_with_a_limit_blocks_the_host_and_may_be_repeated():
    run_device_ranks(2, wait_with_a_limit)


def use_futures():
    for iteration in range(5):
        tensor = mine(iteration=iteration)
        hold()
        work = dist.all_reduce(tensor, async_op=True)
        future = work.get_future()
        assert future.done()
        doubled = future.then(lambda done: torch.empty_like(done.value()[0]).copy_(done.value()[0]))
        let_go()
        check(doubled.wait(), total(iteration=iteration))
        check(future.value()[0], total(iteration=iteration))
        assert [each.data_ptr() for each in work.result()] == [tensor.data_ptr()]


def test_the_future_of_a_call_on_a_device_is_done_at_once_and_ordered_behind_it():
    run_device_ranks(2, use_futures)


def ask_works_of_blocking_calls():
    tensor = mine()
    options = dist.AllreduceOptions()
    options.asyncOp = False
    work = dist.group.WORLD._get_backend(DEVICE).allreduce([tensor], options)
    assert work.wait(timedelta(seconds=20)) and work.is_completed() and work.is_success()
    check(work.get_future().wait()[0], total())
    with torch.Stream(DEVICE):
        work.wait()
        check(tensor, total())


def test_the_work_of_a_call_on_the_current_stream_may_be_asked_and_waited_for():
    run_device_ranks(2, ask_works_of_blocking_calls)


def give_events_back():
    tensor = mine()
    for _ in range(50):
        dist.all_reduce(tensor, async_op=True).wait()
    dist.barrier()
    before = torch.ops.stand_in.live_events()
    for _ in range(200):
        dist.all_reduce(tensor, async_op=True).wait()
        dist.barrier()
    assert torch.ops.stand_in.live_events() <= before + 10


def test_events_are_used_again():
    run_device_ranks(2, give_events_back, settings={"delay_us": 0})


def call_during_a_capture():
    dist.all_reduce(mine())
    stream = torch.Stream(DEVICE)
    for asynchronous in (False, True):
        with stream:
            tensor = torch.empty(COUNT, device=DEVICE)
            torch.ops.stand_in.begin_capture()
            with pytest.raises(NotImplementedError, match="during the capture of a graph"):
                dist.all_reduce(tensor, async_op=asynchronous)
            torch.ops.stand_in.end_capture()
    tensor = mine()
    dist.all_reduce(tensor)
    check(tensor, total())


def test_a_call_during_a_capture_is_refused_and_the_capture_stays_good():
    run_device_ranks(2, call_during_a_capture)


def until(done):
    deadline = time.monotonic() + 60
    while not done() and time.monotonic() < deadline:
        time.sleep(0.01)
    return done()


def call_beside_a_capture():
    for asynchronous in (False, True):
        dist.all_reduce(mine(), async_op=asynchronous)
    check(mine().clone(), numbers(dist.get_rank(), COUNT, torch.float32, 0))
    first, second, third = mine(), mine(), mine()
    hold()
    outstanding = dist.all_reduce(first, async_op=True)
    recorded = torch.Stream(DEVICE)
    with recorded:
        torch.ops.stand_in.begin_capture()
        assert not outstanding.is_completed()
    later = dist.all_reduce(second, async_op=True)
    dist.all_reduce(third)
    later.wait()
    let_go()
    assert until(outstanding.is_completed)
    outstanding.wait()
    with recorded:
        torch.ops.stand_in.end_capture()
    for tensor in (first, second, third):
        check(tensor, total())


def test_calls_and_questions_beside_a_capture_leave_it_good():
    run_device_ranks(2, call_beside_a_capture)


def ask_what_was_issued():
    backend = dist.group.WORLD._get_backend(DEVICE)
    options = dist.AllreduceOptions()
    options.asyncOp = False
    tensor = mine()
    works = [backend.allreduce([tensor], options) for _ in range(3)]
    hold()
    assert until(lambda: all(work.is_completed() for work in works))
    let_go()


def test_a_blocking_work_is_completed_without_what_came_behind_it():
    run_device_ranks(2, ask_what_was_issued)


def mix_devices():
    with pytest.raises(ValueError, match="must be on one device, got simulated:0 and cpu"):
        dist.group.WORLD._get_backend(DEVICE)._allgather_base(torch.empty(2 * COUNT), mine())
    dist.all_reduce(mine())
    with pytest.raises(
        ValueError, match=r"the tensor is on simulated:1, but the group's communicator is on simulated:0"
    ):
        dist.all_reduce(torch.ones(4, device="simulated:1"))
    tensor = mine()
    dist.all_reduce(tensor)
    check(tensor, total())


def test_a_tensor_of_another_device_is_refused_and_both_are_named():
    run_device_ranks(2, mix_devices, settings={"gpus": 2})
