"""Runs many cases in one launch of ranks, so that each can be a test of its own and costs little."""

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import torch.distributed as dist
from ranks import run_ranks


def failures_of(size: int, cases: Sequence[Callable[[], None]], **options) -> dict[str, str]:
    """The failure of each case by its name: an empty text if the case passed on every rank.

    All ranks run the cases in turn. A rank whose case fails runs no other, since its peers may be in another
    call, so the cases behind it fail with it, by the same text.
    """
    with tempfile.TemporaryDirectory() as folder:
        said = ""
        try:
            run_ranks(size, _call_in_turn, list(cases), folder, **options)
        except AssertionError as failure:
            said = str(failure)
        passed = {
            case.__name__: all(_mark(folder, case, rank).exists() for rank in range(size)) for case in cases
        }
    # A failure behind the last case fails them all.
    fails_behind = said and all(passed.values())
    return {name: "" if ended and not fails_behind else said for name, ended in passed.items()}


def _call_in_turn(cases: Sequence[Callable[[], None]], folder: str) -> None:
    rank = dist.get_rank()  # which a case may change
    for case in cases:
        case()
        _mark(folder, case, rank).touch()


def _mark(folder: str, case: Callable[[], None], rank: int) -> Path:
    return Path(folder, f"{case.__name__}-{rank}")
