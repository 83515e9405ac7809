"""SMP v2's save, async_save and load of state dicts, by torch's distributed checkpoints."""

from __future__ import annotations

import os
import re
import shutil
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed._shard.sharded_tensor import ShardedTensor
from torch.utils._pytree import tree_leaves

_calls: list[Future] = []
_finished = 0


def SORT_BY_LAST_INT(name: str) -> int:  # noqa: N802
    """The last number in a name, by which folders of checkpoints are sorted."""
    numbers = re.findall(r"\d+", os.path.basename(os.fspath(name)))
    return int(numbers[-1]) if numbers else -1


def limit_num_subdirs(folder: str, limit: int, sort_key: Any = SORT_BY_LAST_INT, **_: Any) -> None:
    """Removes the first folders of a folder, so that at most `limit` stay; 0 or less removes none."""
    inside = sorted(
        (each for each in Path(folder).iterdir() if each.is_dir()), key=lambda each: sort_key(each.name)
    )
    for each in inside[: max(0, len(inside) - limit)] if limit > 0 else []:
        shutil.rmtree(each)


def save(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: Any = None,
    storage_writer: Any = None,
    planner: Any = None,
    process_group: dist.ProcessGroup | None = None,
    coordinator_rank: int = 0,
    wait_error_handling: bool = True,
    force_check_all_plans: bool = True,
    s3_region: str | None = None,
    s3client_config: Any = None,
) -> Any:
    """torch.distributed.checkpoint.save."""
    _refuse(checkpoint_id, coordinator_rank, s3_region, s3client_config)
    maybe_finalize_async_calls(blocking=True)
    return dcp.save(
        state_dict,
        checkpoint_id=checkpoint_id,
        storage_writer=storage_writer,
        planner=planner,
        process_group=process_group,
    )


def async_save(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: Any = None,
    storage_writer: Any = None,
    planner: Any = None,
    process_group: dist.ProcessGroup | None = None,
    coordinator_rank: int = 0,
    wait_error_handling: bool = True,
    force_check_all_plans: bool = True,
    s3_region: str | None = None,
    s3client_config: Any = None,
    queue: Any = None,
    sharded_strategy: Any = None,
) -> Future:
    """torch.distributed.checkpoint.async_save over a group of its own; a later call waits for it."""
    _refuse(checkpoint_id, coordinator_rank, s3_region, s3client_config)
    maybe_finalize_async_calls(blocking=True)
    if any(isinstance(each, ShardedTensor) for each in tree_leaves(state_dict)):
        # torch cannot set these aside, so they are written before the call returns.
        dcp.save(
            state_dict,
            checkpoint_id=checkpoint_id,
            storage_writer=storage_writer,
            planner=planner,
            process_group=process_group,
        )
        call: Future = Future()
        call.set_result(None)
        _calls.append(call)
        return call
    call = dcp.async_save(
        state_dict,
        checkpoint_id=checkpoint_id,
        storage_writer=storage_writer,
        planner=planner,
        # The calls of its thread must not come between those of training.
        process_group=process_group or dist.new_group(),
    )
    _calls.append(call)
    return call


def maybe_finalize_async_calls(
    blocking: bool = True, process_group: dist.ProcessGroup | None = None
) -> list[int]:
    """The numbers of the async saves that are over; with `blocking` all are waited for."""
    global _finished
    over = []
    while _calls and (blocking or _calls[0].done()):
        _calls.pop(0).result()
        over.append(_finished)
        _finished += 1
    return over


def load(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: Any = None,
    storage_reader: Any = None,
    planner: Any = None,
    process_group: dist.ProcessGroup | None = None,
    check_keys_matched: bool = True,
    coordinator_rank: int = 0,
    s3_region: str | None = None,
    s3client_config: Any = None,
) -> None:
    """torch.distributed.checkpoint.load; without `check_keys_matched` it may lack keys."""
    _refuse(checkpoint_id, coordinator_rank, s3_region, s3client_config)
    maybe_finalize_async_calls(blocking=True)
    if planner is None and not check_keys_matched:
        planner = dcp.DefaultLoadPlanner(allow_partial_load=True)
    dcp.load(
        state_dict,
        checkpoint_id=checkpoint_id,
        storage_reader=storage_reader,
        planner=planner,
        process_group=process_group,
    )


def _refuse(checkpoint_id: Any, coordinator_rank: int, s3_region: str | None, s3client_config: Any) -> None:
    if str(checkpoint_id).startswith("s3://") or s3_region is not None or s3client_config is not None:
        raise ValueError(
            f"torch.sagemaker.distributed.checkpoint does not serve S3 (checkpoint_id={checkpoint_id!r}, "
            f"s3_region={s3_region!r}); save into a folder that all hosts share, and copy it to S3 afterwards"
        )
    if coordinator_rank != 0:
        raise ValueError(
            f"torch.sagemaker.distributed.checkpoint plans on rank 0, but coordinator_rank is "
            f"{coordinator_rank}; leave it at 0"
        )
