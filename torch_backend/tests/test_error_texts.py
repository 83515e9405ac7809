"""An exception has the code of its message, and says who reports what this rank only hears of."""

import os

import pytest
import torch
import torch.distributed as dist
from ranks import run_ranks


def reduce_other_counts():
    with pytest.raises(dist.DistBackendError, match=r"the ranks' calls differ: .* \[FCCL-5002\]$"):
        dist.all_reduce(torch.ones(4 + dist.get_rank()))


def test_a_failure_ends_with_the_code_of_its_message():
    run_ranks(2, reduce_other_counts)


def call_after_an_abort():
    backend = dist.group.WORLD._get_backend(torch.device("cpu"))
    dist.barrier()
    backend.abort()
    with pytest.raises(dist.DistBackendError, match=r"\[FCCL-10\d{3}\]$"):
        dist.barrier()


def test_a_text_of_the_adapter_itself_ends_with_a_code_too():
    run_ranks(2, call_after_an_abort)


def join_where_rank_0_has_no_interface():
    rank = dist.get_rank()
    if rank == 0:
        os.environ["FCCL_SOCKET_IFNAME"] = "eth9"
    with pytest.raises(dist.DistBackendError) as failure:
        dist.all_reduce(torch.ones(4), group=dist.new_group())
    text = str(failure.value)
    assert "FCCL_SOCKET_IFNAME=eth9 fits no network interface" in text
    assert text.endswith("[FCCL-5009]"), text
    assert ("rank 0 reports: " in text) == (rank == 1)
    assert "Connection closed by peer" not in text


def test_a_failure_of_rank_0_that_others_hear_of_has_its_own_code_alone():
    run_ranks(2, join_where_rank_0_has_no_interface)
