"""Sends and receives bring a tensor from one rank to another, by tag, and wait for no other call."""

import time
from datetime import timedelta

import pytest
import torch
import torch.distributed as dist
from ranks import assert_same, numbers, poisoned, run_ranks

TYPES = [torch.float32, torch.uint8, torch.bool, torch.bfloat16, torch.int64, torch.complex64]
COUNTS = [0, 1, 1000, 70_001]
LONG = 300_000


def others():
    rank, size = dist.get_rank(), dist.get_world_size()
    return (rank + 1) % size, (rank - 1) % size


def send_around():
    rank, (after, before) = dist.get_rank(), others()
    for iteration, dtype in enumerate(TYPES):
        for count in COUNTS:
            mine, theirs = numbers(rank, count, dtype, iteration), poisoned(count, dtype)
            if rank == 0:
                dist.send(mine, after)
                assert dist.recv(theirs, before) == before
            else:
                assert dist.recv(theirs, before) == before
                dist.send(mine, after)
            assert_same(theirs, numbers(before, count, dtype, iteration), (dtype, count))


@pytest.mark.two_hosts(every_change=True)
@pytest.mark.parametrize("size", [2, 3])
def test_a_tensor_is_sent_from_rank_to_rank(size):
    run_ranks(size, send_around)


def exchange_long_ones():
    rank, (after, before) = dist.get_rank(), others()
    for iteration in range(3):
        mine, theirs = numbers(rank, LONG, torch.float32, iteration), poisoned(LONG, torch.float32)
        works = dist.batch_isend_irecv(
            [dist.P2POp(dist.isend, mine, after), dist.P2POp(dist.irecv, theirs, before)]
        )
        for work in works:
            work.wait()
        assert_same(theirs, numbers(before, LONG, torch.float32, iteration), iteration)


@pytest.mark.two_hosts
def test_ranks_that_all_send_before_they_receive_do_not_wait_for_each_other():
    run_ranks(3, exchange_long_ones)


def receive_by_tag():
    tags = [5, 0, 2**31 - 1]
    if dist.get_rank() == 0:
        for work in [dist.isend(numbers(tag % 7, 50, torch.float32), 1, tag=tag) for tag in tags]:
            work.wait()
        dist.send(numbers(0, 5, torch.float32, 1), 1, tag=3)
        dist.send(numbers(0, 5, torch.float32, 2), 1, tag=3)
        return
    for tag in reversed(tags):
        theirs = poisoned(50, torch.float32)
        dist.recv(theirs, 0, tag=tag)
        assert_same(theirs, numbers(tag % 7, 50, torch.float32), tag)
    pair = [poisoned(5, torch.float32) for _ in range(2)]
    works = [dist.irecv(each, 0, tag=3) for each in pair]
    for iteration, (each, work) in enumerate(zip(pair, works, strict=True), 1):
        work.wait()
        assert_same(each, numbers(0, 5, torch.float32, iteration), "the order of one tag")


def test_a_receive_takes_the_oldest_send_with_its_tag():
    run_ranks(2, receive_by_tag)


def receive_from_anybody():
    rank, size = dist.get_rank(), dist.get_world_size()
    if rank != 0:
        time.sleep(0.2 * (size - rank))
        dist.send(numbers(rank, 100, torch.float32), 0, tag=4)
        return
    senders = []
    for _ in range(size - 1):
        theirs = poisoned(100, torch.float32)
        senders.append(dist.recv(theirs, tag=4))
        assert_same(theirs, numbers(senders[-1], 100, torch.float32), senders)
    assert sorted(senders) == list(range(1, size))


@pytest.mark.two_hosts
def test_a_receive_from_any_rank_says_who_has_sent():
    run_ranks(4, receive_from_anybody)


def send_within_a_group():
    rank = dist.get_rank()
    group = dist.new_group([1, 2])
    if rank == 0:
        return
    theirs = poisoned(10, torch.float32)
    if rank == 1:
        dist.send(numbers(rank, 10, torch.float32), 2, group=group)
        assert dist.recv(theirs, group=group) == 2
    else:
        assert dist.recv(theirs, group=group) == 1
        dist.send(numbers(rank, 10, torch.float32), group=group, group_dst=0)
    assert_same(theirs, numbers(3 - rank, 10, torch.float32))


def test_ranks_are_those_of_the_group():
    run_ranks(3, send_within_a_group)


def send_strided():
    count = 400
    if dist.get_rank() == 0:
        wide = torch.stack([numbers(0, count, torch.float32), poisoned(count, torch.float32)], dim=-1)
        dist.send(wide[:, 0], 1)
        return
    whole = poisoned(count, torch.float32).view(20, 20).t()
    dist.recv(whole, 0)
    assert_same(whole, numbers(0, count, torch.float32).view(20, 20))
    assert whole.stride() == (1, 20)


def test_tensors_of_any_strides_are_sent_in_the_order_of_their_indices():
    run_ranks(2, send_strided)


def collect_while_a_receive_waits():
    rank = dist.get_rank()
    theirs = poisoned(LONG, torch.float32)
    work = dist.irecv(theirs, 1 - rank)
    for iteration in range(20):
        tensor = numbers(rank, 1000, torch.float32, iteration)
        dist.all_reduce(tensor, async_op=iteration % 2 == 0)
        dist.barrier()
        assert_same(tensor, sum(numbers(peer, 1000, torch.float32, iteration) for peer in range(2)))
    assert not work.is_completed()
    with pytest.raises(dist.DistBackendError, match="not done within the 100 ms given to wait"):
        work.wait(timedelta(milliseconds=100))
    sending = dist.isend(numbers(rank, LONG, torch.float32), 1 - rank)
    work.wait()
    sending.wait()
    assert work.is_completed() and work.is_success()
    assert_same(theirs, numbers(1 - rank, LONG, torch.float32))


def test_a_receive_holds_up_neither_collectives_nor_barriers_and_may_be_waited_for_again():
    run_ranks(2, collect_while_a_receive_waits)


def send_to_itself():
    rank = dist.get_rank()
    theirs = poisoned(LONG, torch.float32)
    works = [dist.isend(numbers(rank, LONG, torch.float32), rank), dist.irecv(theirs, rank)]
    for work in works:
        work.wait()
    assert_same(theirs, numbers(rank, LONG, torch.float32))


def test_a_rank_may_send_to_itself():
    run_ranks(2, send_to_itself)


def drop_works():
    rank = dist.get_rank()
    received = [poisoned(LONG, torch.float32) for _ in range(8)]
    for iteration, theirs in enumerate(received):
        dist.isend(numbers(rank, LONG, torch.float32, iteration), 1 - rank, tag=iteration)
        work = dist.irecv(theirs, 1 - rank, tag=iteration)
        if iteration == len(received) - 1:
            last = work
    last.wait()
    for _ in range(1000):
        if torch.equal(received[0], numbers(1 - rank, LONG, torch.float32)):
            break
        time.sleep(0.01)
    assert_same(received[0], numbers(1 - rank, LONG, torch.float32))


def test_sends_whose_works_were_dropped_keep_their_tensors_until_they_are_done():
    run_ranks(2, drop_works)


def exchange_objects():
    if dist.get_rank() == 0:
        dist.send_object_list([{"from": 0}, "text"], 1)
        return
    objects = [None, None]
    assert dist.recv_object_list(objects, 0) == 0
    assert objects == [{"from": 0}, "text"]


def test_lists_of_objects_are_sent():
    run_ranks(2, exchange_objects)


def use_futures():
    rank = dist.get_rank()
    theirs = poisoned(10, torch.float32)
    receiving = dist.irecv(theirs, 1 - rank)
    doubled = receiving.get_future().then(lambda done: done.value()[0] * 2)
    dist.send(numbers(rank, 10, torch.float32), 1 - rank)
    assert_same(doubled.wait(), 2 * numbers(1 - rank, 10, torch.float32))


def test_a_receive_has_a_future():
    run_ranks(2, use_futures)


def disagree():
    rank = dist.get_rank()
    with pytest.raises(dist.DistBackendError) as failure:
        if rank == 0:
            dist.send(torch.ones(70_000), 1)
        else:
            dist.recv(torch.ones(70_001), 0)
    assert "70000" in str(failure.value) and "70001" in str(failure.value), failure.value


def test_ends_that_differ_are_an_error_on_both_that_shows_them():
    run_ranks(2, disagree)


def lose_the_peer():
    if dist.get_rank() == 1:
        return
    began = time.monotonic()
    with pytest.raises(dist.DistBackendError, match="rank 1"):
        dist.recv(torch.empty(4), 1)
    assert time.monotonic() - began < 20


def test_a_receive_from_a_rank_that_has_left_fails():
    run_ranks(2, lose_the_peer)


def abort_while_receiving():
    rank = dist.get_rank()
    work = dist.irecv(torch.empty(4), 1 - rank)
    dist.barrier()
    if rank == 0:
        dist.group.WORLD._get_backend(torch.device("cpu")).abort()
    with pytest.raises(dist.DistBackendError, match="abort"):
        work.wait()


def test_an_abort_ends_a_receive():
    run_ranks(2, abort_while_receiving)
