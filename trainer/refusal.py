"""How a trainer refuses its settings: the first rank says why, and no other rank ends the run before."""

import os
import sys
import time

WRONG_SETTINGS = 2
FIRST_RANK_STARTS_SECONDS = 5
"""A launcher ends all ranks once one has ended, and the first rank may still be starting."""


def is_first_rank() -> bool:
    """Whether this is rank 0, or a process without ranks."""
    return os.environ.get("RANK", "0") == "0"


def refuse(program: str, error: Exception) -> int:
    """The exit status of a rank whose run cannot start."""
    if is_first_rank():
        print(f"{program}: {error}", file=sys.stderr, flush=True)
    else:
        time.sleep(FIRST_RANK_STARTS_SECONDS)
    return WRONG_SETTINGS
