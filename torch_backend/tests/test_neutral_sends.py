"""Sends and receives as torch 2.15's test_c10d_p2p asks them of every backend; tests of the same contents."""

import itertools

import pytest
import torch
import torch.distributed as dist
from cases import failures_of
from ranks import assert_same, numbers, poisoned
from test_neutral_collectives import COUNTS, MOVED


def neighbours():
    """The rank to send to and the one to receive from, in a ring."""
    rank, size = dist.get_rank(), dist.get_world_size()
    return (rank + 1) % size, (rank - 1) % size


def in_turn(send, receive):
    """Half of the ranks send first, so that none waits for ever where both block."""
    steps = (send, receive) if dist.get_rank() % 2 == 0 else (receive, send)
    return [step() for step in steps]


def send_and_recv_move_every_type():
    to, source = neighbours()
    for index, (dtype, count) in enumerate(itertools.product(MOVED, COUNTS)):
        mine, theirs = numbers(dist.get_rank(), count, dtype, index), poisoned(count, dtype)
        in_turn(lambda m=mine: dist.send(m, to), lambda t=theirs: dist.recv(t, source))
        assert_same(theirs, numbers(source, count, dtype, index), (dtype, count))


def isend_and_irecv_move_every_type():
    to, source = neighbours()
    for index, (dtype, count) in enumerate(itertools.product(MOVED, COUNTS)):
        mine, theirs = numbers(dist.get_rank(), count, dtype, index), poisoned(count, dtype)
        for work in in_turn(lambda m=mine: dist.isend(m, to), lambda t=theirs: dist.irecv(t, source)):
            work.wait()
        assert_same(theirs, numbers(source, count, dtype, index), (dtype, count))


def batches_move_every_type_in_either_order():
    to, source = neighbours()
    for index, (dtype, receives_first, pairs) in enumerate(itertools.product(MOVED, (False, True), (1, 2))):
        sent = [numbers(dist.get_rank(), 1, dtype, index + pair) for pair in range(pairs)]
        received = [poisoned(1, dtype) for _ in range(pairs)]
        batch = []
        for mine, theirs in zip(sent, received, strict=True):
            both = [dist.P2POp(dist.isend, mine, to), dist.P2POp(dist.irecv, theirs, source)]
            batch += reversed(both) if receives_first else both
        for work in dist.batch_isend_irecv(batch):
            work.wait()
        for pair, theirs in enumerate(received):
            assert_same(theirs, numbers(source, 1, dtype, index + pair), (dtype, receives_first, pair))


def a_send_whose_work_is_dropped_arrives():
    to, source = neighbours()
    theirs = poisoned(4, torch.float32)
    works = in_turn(
        lambda: (dist.isend(numbers(dist.get_rank(), 4, torch.float32), to), None)[1],
        lambda: dist.irecv(theirs, source),
    )
    next(work for work in works if work).wait()
    assert_same(theirs, numbers(source, 4, torch.float32))


CASES = [
    send_and_recv_move_every_type,
    isend_and_irecv_move_every_type,
    batches_move_every_type_in_either_order,
    a_send_whose_work_is_dropped_arrives,
]


@pytest.fixture(scope="module")
def failures():
    return failures_of(3, CASES)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_in_any_type_and_form(case, failures):
    assert not failures[case.__name__], failures[case.__name__]
