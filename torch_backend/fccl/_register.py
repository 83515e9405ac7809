"""Makes the name "fccl" known to torch.distributed; the library is loaded when the first group is made.

torch is imported inside the functions: torch calls register_quietly at the end of its own import.
"""

from __future__ import annotations

import atexit
import functools
import os
import warnings
from datetime import timedelta
from pathlib import Path
from typing import Any

from fccl import _build, _names, _sharded_tensor
from fccl._names import NAME


def register() -> None:
    """Registers the backend; does nothing when it is registered."""
    import torch.distributed as dist

    if NAME.upper() in dist.Backend._plugins:
        return
    dist.Backend.register_backend(NAME, _create, extended_api=True, devices=served_devices())
    backend_class = torch_backend_class()
    # torch calls this on ranks outside a new group when the backend can split; there is nothing to do there.
    if not hasattr(backend_class, "perform_nocolor_split"):
        backend_class.perform_nocolor_split = lambda self, device: None
    # dist.split_group, and so a mesh under a group that is bound to a device, copies what this gives.
    if not hasattr(backend_class, "options"):
        backend_class.options = property(_options_of)
    # dist._time_estimator calls these of every backend that says it can; torch 2.15 has them.
    if not hasattr(backend_class, "_start_time_estimate"):
        backend_class._start_time_estimate = lambda self: load().start_estimate()
        backend_class._end_time_estimate = lambda self: load().end_estimate()
    _names.fulfil(_names.wishes_of(dict(os.environ)), _create, served_devices())


def served_devices() -> list[str]:
    """The devices that the name "fccl" stands for where a program does not say, as in "cuda:fccl".

    CUDA's only where there is a GPU: without one, its mention misleads ShardedTensor and others.
    """
    return ["cpu", "cuda"] if _has_gpus() else ["cpu"]


def _has_gpus() -> bool:
    """Asks NVML, and nobody if that does not know: CUDA, once initialised, is of no use to a forked child."""
    from torch import cuda

    if not cuda._is_compiled() or not hasattr(cuda, "_device_count_nvml"):
        return False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            visible = cuda._device_count_nvml()
            # It cannot count those that are named as parts of a GPU.
            return visible > 0 or (visible < 0 and cuda._raw_device_count_nvml() > 0)
    except (OSError, AttributeError):
        return False


def _options_of(backend: Any) -> Any:
    """Options for a group to be split off, of which torch itself sets name and timeout."""
    if backend.name() != NAME:
        raise AttributeError(f"backends of the kind {backend.name()!r} have no attribute 'options'")

    class Options(torch_backend_class().Options):
        def __deepcopy__(self, memo: dict) -> Options:
            return Options(NAME)

    return Options(NAME)


def torch_backend_class() -> type:
    """The Python class of every backend that is written in C++."""
    from torch._C._distributed_c10d import Backend

    return Backend


def register_quietly() -> None:
    """Like register, but a failure is a warning: an exception here would make `import torch` itself fail."""
    try:
        register()
    except Exception as error:
        warnings.warn(
            f"fccl is installed but could not be registered with torch.distributed: {error}", stacklevel=2
        )


def set_default() -> None:
    """Makes "fccl" the backend of the tensors that it serves here where a program names none."""
    import torch.distributed as dist

    register()
    for device in dist.Backend.backend_capability[NAME]:
        dist.Backend.default_device_backend_map[device] = NAME
    _names.watch(_names.Wishes())


def counters() -> dict[str, dict[str, float | None]]:
    """Calls, bytes and seconds of each collective of this process so far, over all groups.

    seconds is None where no call was timed: on one host, calls that fit the mailbox are counted only.
    """
    columns = load().counters()
    return {
        name: {"calls": calls, "bytes": nbytes, "seconds": seconds or None}
        for name, calls, nbytes, seconds in zip(*columns, strict=True)
    }


def _create(options: Any, _backend_options: Any) -> Any:
    """Makes this rank's backend of a new group; torch calls it on every member, once for all devices."""
    return create(options.store, options.group_rank, options.group_size, options.timeout, options.group_id)


def create(store: Any, rank: int, size: int, timeout: timedelta, name: str) -> Any:
    """Makes a backend whose ranks meet in the store; the name stands in messages."""
    import torch
    import torch.distributed as dist
    from torch._C._distributed_c10d import ProcessGroup

    register()
    blank = ProcessGroup(store, rank, size)
    timeout_ms = timeout // timedelta(milliseconds=1)
    # A group of this machine may never see one of two kinds of memory, and the other one only later.
    at_once = dist.Backend.backend_capability[NAME] == ["cpu"]
    if at_once:
        _sharded_tensor.answer_cpu()
    made = load().make_process_group(blank.boxed(), name, timeout_ms, at_once)
    group = ProcessGroup.unbox(made)
    return group._get_backend(torch.device("cpu"))


@functools.cache
def load() -> Any:
    """Loads the adapter for the torch that runs into this process and gives its operators."""
    import torch

    adapter = _adapter_for(torch.__version__)
    try:
        torch.ops.load_library(adapter)
    except OSError as error:
        raise RuntimeError(
            f"fccl {_build.VERSION} could not load its adapter {adapter.name} into torch "
            f"{torch.__version__}: {error}. Reinstall fccl. {_REBUILD}"
        ) from error
    atexit.register(torch.ops.fccl.finish_callbacks)
    return torch.ops.fccl


_REBUILD = (
    "Or build fccl for the torch that is installed: "
    "`pip install --no-build-isolation --force-reinstall --no-deps .` in FCCL's source folder."
)


def adapters() -> dict[str, Path]:
    """The adapters of this package, by the minor version of torch that each was built for."""
    files = {path.stem.partition("-")[2]: path for path in Path(__file__).parent.glob("libfccl_torch-*.so")}
    return dict(sorted(files.items(), key=lambda item: [int(part) for part in item[0].split(".")]))


def _adapter_for(running: str) -> Path:
    """Refuses another minor version: an adapter would load and then crash, for torch's classes differ."""
    found = adapters()
    minor = ".".join(running.split(".")[:2])
    if minor not in found:
        raise RuntimeError(
            f"fccl {_build.VERSION} has no adapter for torch {running}, which runs here; "
            f"it has adapters for: {', '.join(found) or 'none'}. Install such a torch. {_REBUILD}"
        )
    return found[minor]
