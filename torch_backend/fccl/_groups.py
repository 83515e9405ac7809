"""Groups as a program holds them: made without init_process_group, and asked whether fccl runs them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from fccl import _register


def is_active(group: Any = None, device: Any = None) -> bool:
    """Tells if the collectives of a group go through fccl: for every kind of memory, or for `device`'s.

    Without a group it is the default one; a backend that stands for a group may be asked, too.
    """
    import torch
    import torch.distributed.distributed_c10d as c10d

    if isinstance(group, _register.torch_backend_class()):
        return _is_of_fccl(group)
    group = c10d._get_default_group() if group is None else group
    if not isinstance(group, c10d.ProcessGroup):
        raise ValueError("fccl.is_active: this process is not a rank of the group")
    served = {kind.type: kind for kind in group._device_types}
    wanted = served if device is None else [torch.device(device).type]
    return bool(wanted) and all(
        kind in served and _is_of_fccl(group._get_backend(served[kind])) for kind in wanted
    )


def _is_of_fccl(backend: Any) -> bool:
    # TORCH_DISTRIBUTED_DEBUG=DETAIL puts wrappers around it.
    while hasattr(backend, "wrapped_pg"):
        backend = backend.wrapped_pg
    return backend.name() == _register.NAME


class _MadeByFccl(type):
    """Counts the backends of fccl, which C++ makes, as instances of the class."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, _register.torch_backend_class()) and _is_of_fccl(instance)


class ProcessGroup(metaclass=_MadeByFccl):
    """This rank's end of a group that meets in a store, made as torch's ProcessGroupGloo is.

    It needs no init_process_group. Every rank makes it, with a store prefix that no other group uses. It is a
    backend of torch.distributed: collectives are its methods (allreduce, broadcast, ...), and a
    torch.distributed.ProcessGroup may hold it. The name stands in messages.
    """

    def __new__(
        cls, store: Any, rank: int, size: int, timeout: timedelta = timedelta(minutes=30), *, name: str = ""
    ) -> Any:
        if not 0 <= rank < size:
            raise ValueError(f"fccl.ProcessGroup: the rank is {rank} of {size}: give 0 <= rank < size")
        if not isinstance(timeout, timedelta) or timeout <= timedelta(0):
            raise ValueError(f"fccl.ProcessGroup: the timeout is {timeout!r}: give a timedelta above 0")
        return _register.create(store, rank, size, timeout, name)
