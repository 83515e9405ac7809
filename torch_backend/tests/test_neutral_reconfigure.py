"""Groups made anew as torch 2.15's test_c10d_fault_tolerance asks it, by tests of its contents.

A rank that was killed is in test_shrink.py.
"""

import os
from datetime import timedelta

import pytest
import torch
import torch.distributed as dist
import torch.distributed.distributed_c10d as c10d
from cases import failures_of
from ranks import assert_same, numbers, poisoned

pytestmark = pytest.mark.skipif(not hasattr(c10d, "_reconfigure"), reason="torch has it from 2.15 on")
SIZE = 3


def handles(of):
    """The handles of all ranks in the order of their start, told under a name that is used once."""
    said = dist.PrefixStore(of, c10d._get_default_store())
    said.set(str(started_as()), dist._get_reconfigure_handle())
    return [said.get(str(rank)).decode() for rank in range(SIZE)]


def started_as():
    """The rank that this process had at first."""
    return int(os.environ["STARTED_AS"])


def torch_is_told_that_it_can():
    assert dist._supports_reconfigure()
    assert dist.group.WORLD._get_backend(torch.device("cpu")).supports_reconfigure


def reconfigure(uuid, of):
    dist._reconfigure(uuid, of, timeout=timedelta(seconds=30)).wait()


def meet(name):
    """Waits for all ranks outside of the group."""
    handles(name)


def expect(rank, size):
    """The group is of so many ranks, and adds."""
    assert (dist.get_rank(), dist.get_world_size()) == (rank, size)
    tensor = numbers(rank, 4, torch.float32)
    dist.all_reduce(tensor)
    assert_same(tensor, sum(numbers(each, 4, torch.float32) for each in range(size)))


def all_ranks_meet_anew():
    reconfigure(100, handles("anew"))
    expect(started_as(), SIZE)


def what_is_made_anew_sends_and_receives():
    reconfigure(200, handles("sends"))
    rank = dist.get_rank()
    backend, theirs = dist.group.WORLD._get_backend(torch.device("cpu")), poisoned(4, torch.float32)
    source = (rank - 1) % SIZE
    works = [
        backend.send([numbers(rank, 4, torch.float32)], (rank + 1) % SIZE, 0),
        backend.recv([theirs], source, 0),
    ]
    for work in works:
        work.wait()
    assert_same(theirs, numbers(source, 4, torch.float32))


def leave_out(excluded, uuid):
    own = handles(f"without {excluded}")
    if started_as() != excluded:
        reconfigure(uuid, [handle for rank, handle in enumerate(own) if rank != excluded])
        expect(started_as() - (started_as() > excluded), SIZE - 1)
        tensor = numbers(5, 4, torch.float32) if dist.get_rank() == 0 else poisoned(4, torch.float32)
        dist.broadcast(tensor, group_src=0)
        assert_same(tensor, numbers(5, 4, torch.float32))
    meet(f"after {excluded} was left out")


def the_last_rank_is_left_out_and_comes_back():
    leave_out(SIZE - 1, 300)
    reconfigure(301, handles("last is back"))
    expect(started_as(), SIZE)


def a_middle_rank_is_left_out_and_comes_back():
    leave_out(SIZE // 2, 400)
    reconfigure(401, handles("middle is back"))
    expect(started_as(), SIZE)


def each_rank_goes_alone_and_all_come_back_and_go_again():
    reconfigure(500 + started_as(), [dist._get_reconfigure_handle()])
    expect(0, 1)
    reconfigure(510, handles("alone"))
    expect(started_as(), SIZE)
    reconfigure(520 + started_as(), [dist._get_reconfigure_handle()])
    expect(0, 1)
    meet("alone again")


def all_who_are_alone_meet():
    reconfigure(600, handles("from alone"))
    expect(started_as(), SIZE)


def the_same_ranks_meet_again():
    reconfigure(700, handles("same"))
    expect(started_as(), SIZE)


def some_join_later():
    first = handles("first of them")
    if started_as() < SIZE // 2:
        reconfigure(800, first[: SIZE // 2])
    reconfigure(801, handles("the others, too"))
    expect(started_as(), SIZE)


def two_parts_are_made_and_merged():
    own, cut = handles("parts"), SIZE // 2
    if started_as() < cut:
        reconfigure(900, own[:cut])
    else:
        reconfigure(901, own[cut:])
    expect(started_as() - (0 if started_as() < cut else cut), cut if started_as() < cut else SIZE - cut)
    reconfigure(902, handles("merged"))
    expect(started_as(), SIZE)


def all_meet_after_an_abort():
    dist.group.WORLD._get_backend(torch.device("cpu")).abort()
    reconfigure(1000, handles("aborted"))
    expect(started_as(), SIZE)


def a_uuid_serves_once():
    uuid = 1100 + started_as()
    reconfigure(uuid, [dist._get_reconfigure_handle()])
    with pytest.raises(RuntimeError, match="already used"):
        reconfigure(uuid, [dist._get_reconfigure_handle()])
    expect(0, 1)


CASES = [
    torch_is_told_that_it_can,
    all_ranks_meet_anew,
    what_is_made_anew_sends_and_receives,
    the_last_rank_is_left_out_and_comes_back,
    a_middle_rank_is_left_out_and_comes_back,
    each_rank_goes_alone_and_all_come_back_and_go_again,
    all_who_are_alone_meet,
    the_same_ranks_meet_again,
    some_join_later,
    two_parts_are_made_and_merged,
    all_meet_after_an_abort,
    a_uuid_serves_once,
]


def to_be_reconfigured(rank):
    os.environ["STARTED_AS"] = str(rank)
    return {"enable_reconfigure": True}


@pytest.fixture(scope="module")
def failures():
    return failures_of(SIZE, CASES, prepare=to_be_reconfigured)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_as_torch_asks_of_every_backend(case, failures):
    assert not failures[case.__name__], failures[case.__name__]


def test_a_group_of_two_backends_refuses():
    group = c10d.ProcessGroup(0, 1)
    group._register_backend(torch.device("cpu"), c10d.ProcessGroup.BackendType.GLOO)
    group._register_backend(torch.device("cuda"), c10d.ProcessGroup.BackendType.NCCL)
    with pytest.raises(RuntimeError, match="multiple backends"):
        group.get_reconfigure_handle()
