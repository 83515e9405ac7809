"""The future of a work: it is done, and its callbacks have run, when the wait for the work ends."""

import itertools
import threading

import pytest
import torch
import torch.distributed as dist
from ranks import numbers, run_ranks

COUNTS = (16, 1024, 16_384)


def count_late_futures(calls):
    """Even calls are waited for at once, by the thread that runs them; odd ones while the worker does."""
    rank, size = dist.get_rank(), dist.get_world_size()
    late = []
    for call in range(calls):
        tensor = numbers(rank, COUNTS[call % 3], torch.float32, call)
        ran = []
        work = dist.all_reduce(tensor, async_op=True)
        asked_before = call // 2 % 2 == 0
        future = work.get_future() if asked_before else None
        chained = future.then(ran.append) if asked_before and call % 8 == 0 else None
        if call % 2:
            threading.Event().wait(0.00002 * (call % 7))
        work.wait()
        future = future or work.get_future()
        if not future.done() or not work.is_completed() or (chained and not (ran and chained.done())):
            late.append(call)
        if call % 50 == 0:
            assert torch.equal(
                future.value()[0],
                sum(numbers(peer, tensor.numel(), torch.float32, call) for peer in range(size)),
            )
    assert not late, f"{len(late)} of {calls} futures were late, the first of call {late[0]}"


@pytest.mark.parametrize("size", [2, 4])
def test_a_wait_ends_when_the_future_is_done_and_its_callbacks_have_run(size):
    run_ranks(size, count_late_futures, 600)


@pytest.mark.slow
@pytest.mark.parametrize("size", [2, 4])
def test_of_20_000_works_none_has_a_late_future(size):
    run_ranks(size, count_late_futures, 20_000, timeout=600)


def exchange_in_a_ring():
    rank, size = dist.get_rank(), dist.get_world_size()
    for call in range(300):
        received = torch.empty(COUNTS[call % 3])
        works = [
            dist.irecv(received, (rank - 1) % size),
            dist.isend(numbers(rank, received.numel(), torch.float32, call), (rank + 1) % size),
        ]
        futures = [work.get_future() for work in works] if call % 2 else []
        for work in works:
            work.wait()
        assert all(future.done() for future in futures or [work.get_future() for work in works]), call
        assert torch.equal(received, numbers((rank - 1) % size, received.numel(), torch.float32, call))


def test_a_wait_for_a_send_or_a_receive_ends_when_its_future_is_done():
    run_ranks(3, exchange_in_a_ring)


def fail_and_look_at_the_futures():
    if dist.get_rank() == 1:
        dist.distributed_c10d._get_default_store().wait(["failed"])
        return
    works = [dist.all_reduce(torch.ones(10), async_op=True) for _ in range(20)]
    futures = [work.get_future() for work in works[::2]]
    dist.group.WORLD._get_backend(torch.device("cpu")).abort()
    for work in works:
        with pytest.raises(dist.DistBackendError, match="abort"):
            work.wait()
        assert work.get_future().done()
    assert all(future.done() for future in futures)
    dist.distributed_c10d._get_default_store().set("failed", "")


def test_a_wait_that_fails_ends_when_the_future_is_done():
    run_ranks(2, fail_and_look_at_the_futures)


def wait_in_callbacks_for_each_other():
    waited = []

    def wait_for(work):
        def then(_):
            work.wait()
            waited.append(work.is_completed())

        return then

    for call in range(50):
        works = [dist.all_reduce(torch.ones(COUNTS[call % 3]), async_op=True) for _ in range(2)]
        futures = [
            first.get_future().then(wait_for(second)) for first, second in itertools.permutations(works)
        ] + [works[0].get_future().then(wait_for(works[0]))]
        for work in works:
            work.wait()
        for future in futures:
            future.wait()
    assert waited == [True] * 150


def test_callbacks_of_works_may_wait_for_each_others_works_and_for_their_own():
    run_ranks(2, wait_in_callbacks_for_each_other)
