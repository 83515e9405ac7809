"""monitored_barrier names the ranks that have not come, and the group stays good."""

import threading
import time
from datetime import timedelta

import fccl
import pytest
import torch
import torch.distributed as dist
from ranks import assert_same, numbers, run_ranks


def run_threads(size, function):
    """Calls function(group) on `size` ranks, which are threads and meet in memory."""
    store, failures = dist.HashStore(), []

    def run(rank):
        try:
            group = fccl.ProcessGroup(store, rank, size, timedelta(seconds=30), name="threads")
            function(group)
            assert_good(group)
            group.shutdown()
        except BaseException as failure:
            failures.append(failure)
            raise

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not failures, failures


def assert_good(group):
    tensor = numbers(group.rank(), 5, torch.int32)
    group.allreduce([tensor]).wait()
    expected = sum(numbers(rank, 5, torch.int32) for rank in range(group.size()))
    assert_same(tensor, expected.to(torch.int32), "after the barrier")


def pass_barrier(group, seconds, every_rank=False):
    group.monitored_barrier(timedelta(seconds=seconds), wait_all_ranks=every_rank)


def wait_for_the_last(group):
    for last in range(3):
        arrived = time.monotonic()
        if group.rank() == last:
            time.sleep(0.2)
        pass_barrier(group, 20)
        waited = time.monotonic() - arrived
        assert waited > 0.1, f"rank {group.rank()} passed after {waited} s, before rank {last} had come"


def test_nobody_passes_before_the_last_rank_has_come():
    run_threads(3, wait_for_the_last)


def miss_ranks_2_and_3(group):
    told = [
        r"group 'threads' on rank 0 of 4: Ranks 2, 3 failed to pass monitoredBarrier in 500 ms",
        r"Rank 1 successfully reached monitoredBarrier, .* rank 0: it said that Ranks 2, 3 failed to pass",
    ]
    if group.rank() < 2:
        with pytest.raises(dist.DistBackendError, match=told[group.rank()]):
            pass_barrier(group, 0.5, every_rank=True)


def test_ranks_that_have_not_come_are_named_on_those_that_have():
    run_threads(4, miss_ranks_2_and_3)


def come_too_late(group):
    rank = group.rank()
    told = "Rank 1 failed to pass monitoredBarrier in 200 ms, nor did 2"
    if rank > 0:
        time.sleep(1)
        told = f"Rank {rank} successfully .* rank 0: it has not come to it within 200 ms, or has given up"
    with pytest.raises(dist.DistBackendError, match=told):
        pass_barrier(group, 0.2)
    # The next barrier ignores the keys that the late ranks left behind.
    pass_barrier(group, 20)


def test_a_rank_that_comes_too_late_is_told_and_the_next_barrier_passes():
    run_threads(3, come_too_late)


def come_before_rank_0(group):
    if group.rank() == 0:
        time.sleep(0.1)
    if group.rank() == 2:
        time.sleep(1.5)
    # The time of rank 1 is over before rank 2 comes, but rank 0 is there and waits.
    pass_barrier(group, 1.0 if group.rank() == 1 else 20)


def test_a_rank_waits_as_long_as_rank_0_does():
    run_threads(3, come_before_rank_0)


def have_no_time(group):
    if group.rank() == 0:
        with pytest.raises(RuntimeError, match="Rank 0 timed out in monitoredBarrier"):
            pass_barrier(group, 0)


def test_a_barrier_without_time_is_refused_on_rank_0():
    run_threads(2, have_no_time)


def leave_nothing_behind(store):
    before = store.num_keys()
    ends = {}

    def run(rank):
        ends[rank] = fccl.ProcessGroup(store, rank, 2, timedelta(seconds=30))
        pass_barrier(ends[rank], 20)

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return store.num_keys() - before


def test_a_barrier_leaves_nothing_in_the_store():
    assert leave_nothing_behind(dist.HashStore()) == 0


def ask_torch():
    if torch.__version__ < "2.15":
        with pytest.raises(ValueError, match="only implemented for GLOO"):
            dist.monitored_barrier(timeout=timedelta(seconds=20))
        dist.group.WORLD.monitored_barrier(timedelta(seconds=20))
    else:
        dist.monitored_barrier(timeout=timedelta(seconds=20))
    assert_good(dist.group.WORLD)


def test_torch_lets_the_name_fccl_through_from_2_15_on():
    run_ranks(2, ask_torch)
