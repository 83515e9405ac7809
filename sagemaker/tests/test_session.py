"""Tests of fccl_sagemaker.session and of what fccl_sagemaker.sharding chooses, without any other rank."""

from __future__ import annotations

import warnings
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from fccl_sagemaker import session, sharding
from fccl_sagemaker.config import Config, Degrees
from torch.distributed.fsdp import ShardingStrategy

GROUPS = ("the shards' group", "the replicas' group")
TENSOR = {"tensor_parallel_degree": 2}


class Mesh:
    """Gives back the names of the dimensions that it is asked for."""

    def __getitem__(self, names: Any) -> Any:
        return names


def test_tensor_parallel_ranks_are_neighbours_then_come_shards_then_replicas() -> None:
    ranker = session.Ranker(Degrees(2, 2, 2))
    assert [ranker.get_tp_rank(rank) for rank in range(8)] == [0, 1, 0, 1, 0, 1, 0, 1]
    assert [ranker.get_shard_rank(rank) for rank in range(8)] == [0, 0, 1, 1, 0, 0, 1, 1]
    assert [ranker.get_rep_rank(rank) for rank in range(8)] == [0, 0, 0, 0, 1, 1, 1, 1]
    assert ranker.get_rep_groups() == [[0, 4], [1, 5], [2, 6], [3, 7]]


@pytest.mark.parametrize("name", ["rank", "tp_size", "rep_rank_process_group", "sm_activation_offloading"])
def test_the_state_is_not_known_before_init(name: str) -> None:
    assert not session.is_initialized()
    with pytest.raises(RuntimeError, match=r"call init\(\) first"):
        getattr(session.state, name)


@pytest.mark.parametrize(
    ("there", "says"),
    [((), "RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT are"), (session.TORCHRUN_VARIABLES[1:], "RANK is")],
)
def test_without_a_group_and_without_torchrun_init_says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, there: tuple[str, ...], says: str
) -> None:
    for name in session.TORCHRUN_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    for name in there:
        monkeypatch.setenv(name, "1")
    with pytest.raises(RuntimeError, match=f"but {says} not set; start the script by torchrun"):
        session.init({"hybrid_shard_degree": 1})
    assert not session.is_initialized()


@pytest.mark.parametrize(
    ("keys", "world", "asked", "wanted"),
    [
        ({}, 4, None, (None, None, None)),
        ({}, 4, "SHARD_GRAD_OP", (None, None, "SHARD_GRAD_OP")),
        ({"hybrid_shard_degree": 1}, 4, "FULL_SHARD", (None, None, "NO_SHARD")),
        ({"hybrid_shard_degree": 2}, 4, None, (GROUPS, None, "HYBRID_SHARD")),
        ({"hybrid_shard_degree": 2}, 4, "SHARD_GRAD_OP", (GROUPS, None, "HYBRID_SHARD")),
        ({"hybrid_shard_degree": 2}, 4, "_HYBRID_SHARD_ZERO2", (GROUPS, None, "_HYBRID_SHARD_ZERO2")),
        ({"hybrid_shard_degree": 4}, 4, None, (GROUPS, None, "HYBRID_SHARD")),
        (TENSOR, 4, None, (None, "shard", None)),
        (TENSOR, 4, "HYBRID_SHARD", (None, "shard", "FULL_SHARD")),
        (TENSOR, 4, "SHARD_GRAD_OP", (None, "shard", "SHARD_GRAD_OP")),
        (TENSOR | {"hybrid_shard_degree": 1}, 4, None, (None, "shard", "NO_SHARD")),
        (TENSOR | {"hybrid_shard_degree": 2}, 8, "FULL_SHARD", (None, ("replicas", "shard"), "HYBRID_SHARD")),
    ],
)
def test_degrees_force_the_strategies_that_aws_documents(
    keys: dict[str, int], world: int, asked: str | None, wanted: tuple[Any, Any, str | None]
) -> None:
    config = Config(**keys)
    state = SimpleNamespace(
        config=config,
        degrees=config.degrees(world),
        mesh=Mesh(),
        shard_process_group=GROUPS[0],
        replicas_process_group=GROUPS[1],
    )
    group, mesh, strategy = sharding.chosen(state, None if asked is None else ShardingStrategy[asked])
    assert (group, mesh, None if strategy is None else strategy.name) == wanted


def test_flushes_of_a_gpus_cache_are_warned_of_once_each(monkeypatch: pytest.MonkeyPatch) -> None:
    flushes = {"num_alloc_retries": 0}
    monkeypatch.setattr(torch.cuda, "memory_stats", lambda: flushes)
    watch = sharding._CacheFlushes()
    watch(torch.nn.Identity(), ())
    flushes["num_alloc_retries"] = 3
    with pytest.warns(UserWarning, match="flushed its cache 3 times .* fsdp_cache_flush_warnings to false"):
        watch(torch.nn.Identity(), ())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        watch(torch.nn.Identity(), ())
