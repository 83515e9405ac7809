"""Lets scripts that do not know fccl run through it: what FCCL_TORCH_DEFAULT and FCCL_TORCH_REPLACES ask for.

Both are read once, when the package is registered. With neither set torch stays as it is.
"""

from __future__ import annotations

import functools
import logging
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

NAME = "fccl"
DEFAULT = "FCCL_TORCH_DEFAULT"
REPLACES = "FCCL_TORCH_REPLACES"
_ALLOWED = {DEFAULT: ("cpu", "cuda"), REPLACES: ("gloo", "nccl")}
_PREFIX = "FCCL_TORCH_"
# Served under a replaced name: Gloo's in torch, and of NCCL's those and objects in CPU memory.
_DEVICES = ("cpu", "cuda")


@dataclass(frozen=True)
class Wishes:
    """The environment's wishes: kinds of memory, names of backends, and a fault of their wording."""

    defaults: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()  # variables that look like ours
    fault: str = ""

    def __bool__(self) -> bool:
        return bool(self.defaults or self.replaced or self.unknown or self.fault)


def wishes_of(environment: dict[str, str]) -> Wishes:
    """Reads both variables; an empty one is an unset one."""
    unknown = tuple(name for name in environment if name.startswith(_PREFIX) and name not in _ALLOWED)
    try:
        return Wishes(_list_of(DEFAULT, environment), _list_of(REPLACES, environment), unknown)
    except ValueError as fault:
        return Wishes(unknown=unknown, fault=str(fault))


def _list_of(variable: str, environment: dict[str, str]) -> tuple[str, ...]:
    value = environment.get(variable, "")
    words = [word.strip().lower() for word in value.split(",")] if value.strip() else []
    allowed = _ALLOWED[variable]
    if not set(words) <= set(allowed):
        raise ValueError(
            f"{variable}={value} is not allowed: give {' or '.join(allowed)}, or both with a comma between"
        )
    return tuple(dict.fromkeys(words))


def fulfil(wishes: Wishes, create: Callable, served: list[str]) -> None:
    """Gives fccl the names and defaults that are asked for.

    `create` makes a backend of fccl, which serves the tensors of the devices `served` here.

    A fault is raised when a group is made: raised now, it would make `import torch` itself fail.
    """
    if not wishes:
        return
    import torch.distributed.distributed_c10d as c10d

    for device in wishes.defaults:
        if device in served:
            c10d.Backend.default_device_backend_map[device] = NAME
    if _registers_every_name():
        for name in wishes.replaced:
            _register_in_place_of(name, create)
    watch(wishes)


def _registers_every_name() -> bool:
    """Tells if torch looks up its own backends as it does those of others (2.15 does, 2.13 does not)."""
    import torch.distributed.distributed_c10d as c10d

    return hasattr(c10d.Backend, "_ensure_backend_registered")


def _register_in_place_of(name: str, create: Callable) -> None:
    import torch.distributed.distributed_c10d as c10d

    def create_in_place(options: Any, backend_options: Any) -> Any:
        group = getattr(options, "process_group", None)
        # One backend serves both parts of "cpu:gloo,cuda:nccl", so that a barrier covers both.
        return (_backend_of(group) if group is not None else None) or create(options, backend_options)

    # It has no known type: torch's C++ takes any of Gloo's type for its own class and reads its fields.
    c10d.Backend.register_backend(name, create_in_place, extended_api=True, devices=list(_DEVICES))
    # torch's flight recorder leaves out those that have one of their own.
    getattr(c10d, "_FR_SELF_RECORDING_BACKENDS", set()).discard(name)


def _backend_of(group: Any) -> Any:
    """The backend of fccl that a group has already, if it has one."""
    found = (group._get_backend(device) for device in group._device_types)
    return next((backend for backend in found if backend.name() == NAME), None)


def watch(wishes: Wishes) -> None:
    """Puts a step before and after the one function by which torch makes every group."""
    import torch.distributed.distributed_c10d as c10d

    original = c10d._new_process_group_helper
    if getattr(original, "is_of_fccl", False):
        return

    @functools.wraps(original)
    def make(size: int, rank: int | None, ranks: list[int], backend: str, *others: Any, **named: Any) -> Any:
        if wishes.fault:
            raise ValueError(f"fccl: {wishes.fault}")
        asked = _names_of(backend, wishes)
        made = {device: NAME if name in wishes.replaced else name for device, name in asked.items()}
        _say(wishes, backend, asked, rank)
        # torch 2.13 takes the default of a group without a name for Gloo or NCCL.
        as_it_is = NAME not in made.values() or (made == asked and backend != "undefined")
        if as_it_is or _registers_every_name():
            return original(size, rank, ranks, backend, *others, **named)
        text = ",".join(f"{device}:{name}" for device, name in made.items())
        group, store = original(size, rank, ranks, text, *others, **named)
        if isinstance(group, c10d.ProcessGroup):
            _call_it_as_asked(group, backend, asked, made)
        return group, store

    make.is_of_fccl = True
    c10d._new_process_group_helper = make


def _names_of(backend: str, wishes: Wishes) -> dict[str, str]:
    """The name that serves each kind of memory in a group that is asked for so."""
    import torch.distributed.distributed_c10d as c10d

    if backend in wishes.replaced:
        return dict.fromkeys(_DEVICES, backend)
    names = c10d.BackendConfig(c10d.Backend(backend)).get_device_backend_map()
    return {device: str(name) for device, name in names.items()}


def _call_it_as_asked(group: Any, backend: str, asked: dict[str, str], made: dict[str, str]) -> None:
    """Gives torch's notes of a group that was made under another name the name that the script uses."""
    import torch.distributed.distributed_c10d as c10d

    _, store = c10d._world.pg_map[group]
    c10d._world.pg_map[group] = (backend, store)
    c10d._world.pg_backend_config[group] = ",".join(f"{device}:{name}" for device, name in asked.items())
    if "nccl" not in made.values():
        group._set_default_backend(c10d.ProcessGroup.BackendType.CUSTOM)


_said: set[str] = set()


def _say(wishes: Wishes, backend: str, asked: dict[str, str], rank: int | None) -> None:
    """Once in a job, on rank 0, and only what the environment changes, or is mistaken about."""
    import torch.distributed as dist

    own_rank = dist.get_rank() if dist.is_initialized() else rank
    if own_rank != 0 or os.environ.get("FCCL_LOG") in ("off", "error"):
        return
    for name in wishes.unknown:
        _say_once(f"{name} is not a setting of fccl and has no effect: there are {DEFAULT} and {REPLACES}")
    replaced = [name for name in wishes.replaced if name in asked.values()]
    by_default = wishes.defaults and backend == "undefined" and NAME in asked.values()
    if by_default:
        _say_once(f"fccl is the backend of a group for which the program names none, as {DEFAULT} asks")
    if replaced:
        _say_once(f"fccl is in the place of {' and '.join(replaced)}, as {REPLACES} asks")


def _say_once(text: str) -> None:
    if text not in _said:
        _said.add(text)
        logging.getLogger(NAME).warning(text)
