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
from torch.distributed.checkpoint import FileSystemReader, FileSystemWriter
from torch.distributed.tensor import DTensor
from torch.utils._pytree import tree_leaves

__all__ = [
    "SORT_BY_LAST_INT",
    "FileSystemReader",
    "FileSystemWriter",
    "async_save",
    "limit_num_subdirs",
    "load",
    "maybe_finalize_async_calls",
    "save",
]

_calls: list[Future] = []
_finished = 0
_groups: dict[tuple[int, ...], dist.ProcessGroup] = {}


def SORT_BY_LAST_INT(name: str) -> int:  # noqa: N802
    """The last number in a name, by which folders of checkpoints are sorted."""
    numbers = re.findall(r"\d+", os.path.basename(os.fspath(name)))
    return int(numbers[-1]) if numbers else -1


def limit_num_subdirs(
    folder: str, limit: int, sort_fn: Any = SORT_BY_LAST_INT, regex: str = "", log: bool = True
) -> None:
    """Removes the first folders that `regex` matches, so that at most `limit` of these stay.

    A limit of 0 or less removes none, and so does `log=False`: all ranks call, and one of them removes.
    """
    inside = sorted(
        (each for each in Path(folder).iterdir() if each.is_dir() and re.match(regex, each.name)),
        key=lambda each: sort_fn(each.name),
    )
    for each in inside[: max(0, len(inside) - limit)] if log and limit > 0 else []:
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
    _refuse(checkpoint_id, coordinator_rank, process_group, s3_region, s3client_config)
    _refuse_parts_elsewhere(state_dict, process_group)
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
    _refuse(checkpoint_id, coordinator_rank, process_group, s3_region, s3client_config)
    _refuse_parts_elsewhere(state_dict, process_group)
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
        process_group=_group_beside(process_group),
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
    """torch.distributed.checkpoint.load; `check_keys_matched` compares the keys of all ranks before."""
    _refuse(checkpoint_id, coordinator_rank, process_group, s3_region, s3client_config)
    _refuse_parts_elsewhere(state_dict, process_group)
    maybe_finalize_async_calls(blocking=True)
    if check_keys_matched:
        _compare_keys(state_dict, process_group)
    dcp.load(
        state_dict,
        checkpoint_id=checkpoint_id,
        storage_reader=storage_reader,
        planner=planner,
        process_group=process_group,
    )


def _group_beside(group: dist.ProcessGroup | None) -> dist.ProcessGroup:
    """The same ranks in a group of their own: a save's thread must not call between the calls of training."""
    ranks = tuple(dist.get_process_group_ranks(group or dist.group.WORLD))
    if ranks not in _groups or not _is_known(_groups[ranks]):
        # The ranks of other groups may save elsewhere, or nothing.
        _groups[ranks] = dist.new_group(list(ranks), use_local_synchronization=True)
    return _groups[ranks]


def _is_known(group: dist.ProcessGroup) -> bool:
    """Tells if the group is one of this process's; the end of the default group ends all."""
    try:
        return bool(dist.get_process_group_ranks(group))
    except KeyError:
        return False


def _compare_keys(state_dict: dict[str, Any], group: dist.ProcessGroup | None) -> None:
    ranks = dist.get_process_group_ranks(group or dist.group.WORLD)
    keys: list[Any] = [None] * len(ranks)
    dist.all_gather_object(keys, sorted(map(str, state_dict)), group=group)
    for rank, other in zip(ranks, keys, strict=True):
        if other != keys[0]:
            raise ValueError(
                f"torch.sagemaker.distributed.checkpoint.load() is given other keys on rank {rank} than on "
                f"rank {ranks[0]}: {', '.join(sorted(set(other) ^ set(keys[0])))}; give the same keys "
                f"everywhere, or check_keys_matched=False"
            )


def _refuse(
    checkpoint_id: Any,
    coordinator_rank: int,
    group: dist.ProcessGroup | None,
    s3_region: str | None,
    s3client_config: Any,
) -> None:
    if str(checkpoint_id).startswith("s3://") or s3_region is not None or s3client_config is not None:
        raise ValueError(
            f"torch.sagemaker.distributed.checkpoint does not serve S3 (checkpoint_id={checkpoint_id!r}, "
            f"s3_region={s3_region!r}); save into a folder that all hosts share, and copy it to S3 afterwards"
        )
    first = dist.get_process_group_ranks(group or dist.group.WORLD)[0]
    if coordinator_rank not in (0, first):
        raise ValueError(
            f"torch.sagemaker.distributed.checkpoint plans on the first rank of the group, which is {first}, "
            f"but coordinator_rank is {coordinator_rank}; leave it out"
        )


def _refuse_parts_elsewhere(state_dict: dict[str, Any], group: dist.ProcessGroup | None) -> None:
    if group is None:
        return
    ranks = dist.get_process_group_ranks(group)
    for tensor in tree_leaves(state_dict):
        if isinstance(tensor, DTensor) and not _ranks_with_parts(tensor) <= set(ranks):
            raise ValueError(
                f"torch.sagemaker.distributed.checkpoint is given the group of ranks {ranks}, but other "
                f"ranks hold parts of its tensors, too; with tensor parallelism leave process_group out, and "
                f"name one checkpoint_id on all ranks"
            )


def _ranks_with_parts(tensor: DTensor) -> set[int]:
    """The ranks that hold other parts of a tensor along any dimension of its mesh."""
    mesh, here = tensor.device_mesh.mesh, tensor.device_mesh.get_coordinate()
    found: set[int] = set()
    for dimension, layout in enumerate(tensor.placements):
        if not layout.is_replicate():
            line = tuple(slice(None) if each == dimension else here[each] for each in range(mesh.ndim))
            found.update(mesh[line].tolist())
    return found
