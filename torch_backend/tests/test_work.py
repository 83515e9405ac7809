"""Asynchronous calls: what the returned work and its future say, and when."""

import subprocess
import sys
import threading
import time
from datetime import timedelta

import pytest
import torch
import torch.distributed as dist
from ranks import assert_same, numbers, poisoned, run_ranks

LARGE = 3_000_001


def total(count, iteration=0):
    return sum(numbers(rank, count, torch.float32, iteration) for rank in range(dist.get_world_size()))


def run_async_calls_in_order():
    rank = dist.get_rank()
    tensors = [numbers(rank, count, torch.float32, i) for i, count in enumerate((LARGE, 1, 5000, 0, LARGE))]
    works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    for i, (work, tensor) in reversed(list(enumerate(zip(works, tensors, strict=True)))):
        assert work.wait() and work.wait()
        assert work.is_completed() and work.is_success()
        assert_same(tensor, total(tensor.numel(), i), i)
        assert [each.data_ptr() for each in work.result()] == [tensor.data_ptr()]


@pytest.mark.two_hosts
def test_async_calls_give_their_results_whatever_the_order_of_waits():
    run_ranks(3, run_async_calls_in_order)


def wait_for_what_waits_for_a_callback():
    """Rank 1 issues the second call when rank 0's callback of the first one has run."""
    store = dist.distributed_c10d._get_default_store()
    first, second = numbers(dist.get_rank(), 100_000, torch.float32), torch.ones(1000)
    work = dist.all_reduce(first, async_op=True)
    if dist.get_rank() == 0:
        work.get_future().then(lambda _: store.set("callback", "has run"))
    else:
        store.wait(["callback"])
    dist.all_reduce(second, async_op=True).wait()
    assert_same(first, total(100_000), "the first call")
    assert second[0] == dist.get_world_size()


def test_a_callback_does_not_wait_for_a_later_call_that_is_waited_for():
    run_ranks(2, wait_for_what_waits_for_a_callback)


def mix_async_and_blocking():
    rank, size = dist.get_rank(), dist.get_world_size()
    for iteration in range(20):
        first = numbers(rank, 40_000, torch.float32, iteration)
        work = dist.all_reduce(first, async_op=True)
        second = poisoned(1000 * size, torch.float32)
        gathering = dist.all_gather_into_tensor(
            second, numbers(rank, 1000, torch.float32, iteration), async_op=True
        )
        third = numbers(rank, 2000, torch.float32, iteration)
        dist.all_reduce(third)
        gathering.wait()
        work.wait()
        assert_same(first, total(40_000, iteration))
        assert_same(
            second, torch.cat([numbers(peer, 1000, torch.float32, iteration) for peer in range(size)])
        )
        assert_same(third, total(2000, iteration))


@pytest.mark.two_hosts
def test_blocking_calls_may_follow_unfinished_async_calls():
    run_ranks(3, mix_async_and_blocking)


def drop_works():
    rank, size = dist.get_rank(), dist.get_world_size()
    outputs = [[poisoned(50_000, torch.float32) for _ in range(size)] for _ in range(10)]
    for output in outputs:
        dist.all_gather(output, numbers(rank, 50_000, torch.float32), async_op=True)
    dist.barrier()
    for output in outputs:
        for peer, tensor in enumerate(output):
            assert_same(tensor, numbers(peer, 50_000, torch.float32))


def test_a_barrier_ends_async_calls_whose_works_and_inputs_were_dropped():
    run_ranks(3, drop_works)


def use_futures():
    rank = dist.get_rank()
    work = dist.all_reduce(numbers(rank, LARGE, torch.float32), async_op=True)
    halved = work.get_future().then(lambda future: future.value()[0] / 2)
    assert_same(halved.wait(), total(LARGE) / 2)
    late = work.get_future()
    assert late.done()
    assert_same(late.value()[0], total(LARGE))


def test_the_future_of_a_work_holds_its_tensors_and_runs_callbacks():
    run_ranks(2, use_futures)


def wait_inside_callbacks():
    rank = dist.get_rank()

    def sum_again(future):
        return dist.all_reduce(future.value()[0].clone(), async_op=True).get_future().wait()[0]

    futures = []
    for iteration in range(5):
        work = dist.all_reduce(numbers(rank, 1000, torch.float32, iteration), async_op=True)
        futures.append(work.get_future().then(sum_again))
        assert_same(futures[-1].wait(), total(1000, iteration) * dist.get_world_size())


def test_a_callback_may_wait_for_another_collective():
    run_ranks(2, wait_inside_callbacks)


def wait_with_a_limit():
    rank = dist.get_rank()
    tensor = numbers(rank, 10, torch.float32)
    store = dist.distributed_c10d._get_default_store()
    if rank == 1:
        store.wait(["given up"])
    work = dist.all_reduce(tensor, async_op=True)
    if rank == 0:
        began = time.monotonic()
        with pytest.raises(dist.DistBackendError, match="timed out, not done within the 300 ms"):
            work.wait(timedelta(milliseconds=300))
        assert 0.25 < time.monotonic() - began < 10
        assert not work.is_completed()
        store.set("given up", "")
    work.wait(timedelta(seconds=20))
    assert_same(tensor, total(10))


def test_a_wait_with_a_limit_gives_up_and_a_later_one_succeeds():
    run_ranks(2, wait_with_a_limit)


def leave_a_rank_out(blocking):
    if dist.get_rank() == 0:
        tensor = torch.ones(10)
        with pytest.raises(dist.DistBackendError, match=r"has waited .* for rank 1.*timed out"):
            if blocking:
                dist.all_reduce(tensor)
            else:
                dist.all_reduce(tensor, async_op=True).wait()
        with pytest.raises(dist.DistBackendError):
            dist.all_reduce(tensor)
    else:
        time.sleep(6)


@pytest.mark.two_hosts
@pytest.mark.parametrize("blocking", [True, False])
def test_the_timeout_of_the_group_ends_a_call_and_names_the_missing_rank(blocking):
    # It is also how long the ranks may take to join, on a machine that may be busy.
    run_ranks(2, leave_a_rank_out, blocking, group_timeout=3)


def shorten_the_timeout():
    dist.group.WORLD.set_timeout(timedelta(milliseconds=700))
    if dist.get_rank() == 0:
        began = time.monotonic()
        with pytest.raises(dist.DistBackendError, match=r"for rank 1.*\(timeout= of init_process_group"):
            dist.all_reduce(torch.ones(10))
        assert time.monotonic() - began < 10
    else:
        time.sleep(2)


def test_a_new_timeout_of_the_group_holds_for_later_calls():
    run_ranks(2, shorten_the_timeout, group_timeout=60)


def limit_one_call():
    options = dist.AllreduceOptions()
    options.timeout = timedelta(milliseconds=500)
    options.asyncOp = False
    if dist.get_rank() == 0:
        with pytest.raises(dist.DistBackendError, match=r"has waited .* for rank 1"):
            dist.group.WORLD.allreduce([torch.ones(10)], options)
    else:
        time.sleep(1.5)


def test_the_timeout_of_one_call_holds_for_it():
    run_ranks(2, limit_one_call)


def lose_a_rank():
    if dist.get_rank() == 1:
        threading.Timer(0.5, lambda: __import__("os")._exit(0)).start()
        time.sleep(20)
    work = dist.all_reduce(torch.ones(LARGE), async_op=True)
    with pytest.raises(dist.DistBackendError, match="rank 1"):
        work.wait()
    assert not work.is_success()
    with pytest.raises(RuntimeError, match="rank 1"):
        work.get_future().wait()


@pytest.mark.two_hosts(every_change=True)
def test_the_death_of_a_rank_fails_the_works_of_the_others_and_names_it():
    run_ranks(2, lose_a_rank, timeout=40)


def abort_outstanding_work():
    if dist.get_rank() == 0:
        work = dist.all_reduce(torch.ones(10), async_op=True)
        dist.group.WORLD._get_backend(torch.device("cpu")).abort()
        with pytest.raises(dist.DistBackendError, match="abort"):
            work.wait()
        with pytest.raises(dist.DistBackendError, match="abort"):
            dist.all_reduce(torch.ones(10))
    else:
        time.sleep(0.5)
        with pytest.raises(dist.DistBackendError, match="abort"):
            dist.all_reduce(torch.ones(10))


@pytest.mark.two_hosts
def test_abort_ends_outstanding_work_on_every_rank():
    run_ranks(2, abort_outstanding_work)


def number_the_calls():
    backend = dist.group.WORLD._get_backend(torch.device("cpu"))
    before = backend._get_sequence_number_for_group()
    dist.all_reduce(torch.ones(1), async_op=True).wait()
    dist.barrier()
    assert backend._get_sequence_number_for_group() == before + 2


def test_collectives_are_numbered():
    run_ranks(2, number_the_calls)


ENDS_AT_ONCE = """
import torch, torch.distributed as dist
dist.init_process_group("fccl", store=dist.HashStore(), rank=0, world_size=1)
works = [dist.all_reduce(torch.ones(10), async_op=True) for _ in range(200)]
futures = [work.get_future().then(lambda future: sum(range(20_000))) for work in works]
"""


def test_a_program_may_end_while_callbacks_are_outstanding():
    ran = subprocess.run([sys.executable, "-c", ENDS_AT_ONCE], capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr


def call_from_threads():
    rank, size = dist.get_rank(), dist.get_world_size()
    groups = [dist.new_group() for _ in range(3)]
    errors = []

    def work_on(group, iteration):
        try:
            for _ in range(20):
                tensor = numbers(rank, 3000, torch.float32, iteration)
                dist.all_reduce(tensor, group=group)
                assert_same(tensor, total(3000, iteration))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work_on, args=(group, i)) for i, group in enumerate(groups)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, (size, errors)


def test_threads_may_use_their_own_groups_at_once():
    run_ranks(2, call_from_threads)


def share_a_group():
    wrong, expected = [], total(300)

    def add(thread):
        # All alike, since a call of one thread may meet one of the other thread of another rank.
        for iteration in range(60):
            tensor = numbers(dist.get_rank(), 300, torch.float32)
            if work := dist.all_reduce(tensor, async_op=(thread + iteration) % 2 == 1):
                work.wait()
            if not torch.equal(tensor, expected):
                wrong.append((thread, iteration, tensor))

    threads = [threading.Thread(target=add, args=(thread,)) for thread in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_two_threads_of_a_rank_may_share_a_group_if_their_calls_are_alike():
    run_ranks(3, share_a_group)


def differ_by_threads():
    calls = [
        lambda: dist.all_reduce(torch.ones(300)),
        lambda: dist.all_gather_into_tensor(torch.empty(600), torch.ones(300)),
    ]
    causes = []

    def call(which):
        try:
            calls[which]()
        except dist.DistBackendError as failure:
            causes.append(str(failure))

    # Each rank begins with another thread's call, as two threads that race may.
    for which in (dist.get_rank(), 1 - dist.get_rank()):
        thread = threading.Thread(target=call, args=(which,))
        thread.start()
        thread.join()
    assert len(causes) == 2
    for cause in causes:
        assert "AllReduce(sum) of 300 float32" in cause and "AllGather of 300 float32" in cause, cause


def test_threads_whose_calls_meet_in_another_order_are_an_error_that_shows_both_calls():
    run_ranks(2, differ_by_threads)


def keep_an_object_waiting():
    dist.group.WORLD.set_timeout(timedelta(milliseconds=700))
    if dist.get_rank() == 1:
        time.sleep(2)
        return
    began = time.monotonic()
    with pytest.raises(dist.DistBackendError, match=r"has waited .* for rank 1"):
        dist.all_gather_object([None, None], {"rank": 0})
    assert time.monotonic() - began < 10


def test_the_timeout_of_the_group_holds_for_calls_of_objects():
    run_ranks(2, keep_an_object_waiting, group_timeout=60)
