"""Counts what this process spends in collectives: calls, bytes and seconds."""

import functools
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import torch
import torch.distributed as dist
from torch.distributed import _functional_collectives as functional

NAMES = {"all_gather": "AllGather", "reduce_scatter": "ReduceScatter", "all_reduce": "AllReduce"}

FUNCTIONS = {
    "all_gather": ("all_gather", "all_gather_into_tensor", "all_gather_single"),
    "reduce_scatter": ("reduce_scatter", "reduce_scatter_tensor", "reduce_scatter_single"),
    "all_reduce": ("all_reduce",),
}
"""What FSDP calls, under every name that a torch version has had for it."""


@dataclass(frozen=True)
class Tally:
    """The cost of one collective; bytes are the larger of input and output, call by call."""

    calls: int = 0
    bytes: int = 0
    seconds: float = 0.0

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(self.calls + other.calls, self.bytes + other.bytes, self.seconds + other.seconds)

    def __sub__(self, other: "Tally") -> "Tally":
        return Tally(self.calls - other.calls, self.bytes - other.bytes, self.seconds - other.seconds)


Tallies = dict[str, Tally]


class Counters(Protocol):
    """Totals of this process since it started, by the names of NAMES."""

    def read(self) -> Tallies: ...


class LibraryCounters:
    """FCCL's own counters; calls that fit its mailbox are counted but not timed."""

    def __init__(self) -> None:
        import fccl

        self._read = fccl.counters

    def read(self) -> Tallies:
        counted = self._read()
        return {name: _tally_of(**counted[title]) for name, title in NAMES.items()}


class FunctionCounters:
    """Counts and times torch.distributed's own functions, for a backend that does not count.

    Replaces the functions for the life of the process; one object per process, for its main thread.
    """

    def __init__(self) -> None:
        self._totals = dict.fromkeys(NAMES, Tally())
        self._inside = False
        for name, functions in FUNCTIONS.items():
            for function in functions:
                if hasattr(dist, function):
                    setattr(dist, function, self._counted(name, getattr(dist, function)))
        functional.all_reduce = self._counted("all_reduce", functional.all_reduce)

    def read(self) -> Tallies:
        return dict(self._totals)

    def _counted(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def counted(*arguments: Any, **options: Any) -> Any:
            # One of these functions may be written in terms of another.
            if self._inside:
                return function(*arguments, **options)
            self._inside = True
            begin = time.perf_counter()
            try:
                outcome = function(*arguments, **options)
                # Functional collectives return before they have run; their result is needed at once.
                if isinstance(outcome, torch.Tensor):
                    outcome = functional.wait_tensor(outcome)
            finally:
                self._inside = False
            size = max(map(_bytes, [*arguments, *options.values()]))
            self._totals[name] += Tally(1, size, time.perf_counter() - begin)
            return outcome

        return counted


def counters_for(backend: str) -> Counters:
    """The library's own counters for fccl, and counted functions for any other backend."""
    return LibraryCounters() if backend == "fccl" else FunctionCounters()


def none() -> Tallies:
    """Nothing counted yet."""
    return dict.fromkeys(NAMES, Tally())


def added(some: Tallies, more: Tallies) -> Tallies:
    """The sum, name by name."""
    return {name: some[name] + more[name] for name in NAMES}


def between(before: Tallies, after: Tallies) -> Tallies:
    """The counts between two readings."""
    return {name: after[name] - before[name] for name in NAMES}


def seconds(tallies: Tallies) -> float:
    """Time in all of them together."""
    return sum(tally.seconds for tally in tallies.values())


def _tally_of(calls: int, bytes: int, seconds: float | None) -> Tally:
    return Tally(calls, bytes, seconds or 0.0)


def _bytes(argument: Any) -> int:
    if isinstance(argument, torch.Tensor):
        return argument.numel() * argument.element_size()
    return sum(map(_bytes, argument)) if isinstance(argument, (list, tuple)) else 0
