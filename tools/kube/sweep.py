"""Removes the folder and the control groups of a run when that has ended, in whatever way: sweep.py FOLDER.

The run holds the other end of the standard input.
"""

import shutil
import sys
import time
from pathlib import Path

import groups

_TIME_LIMIT = 30.0


def main(words: list[str]) -> int:
    """1 if something stays."""
    sys.stdin.buffer.read()
    folder = Path(words[0])
    left = groups.remove(folder.name, _TIME_LIMIT)
    deadline = time.monotonic() + _TIME_LIMIT
    # A process that is being killed may still write.
    while folder.exists() and time.monotonic() < deadline:
        shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():
        left.append(folder)
    if left:
        print(f"kube: these stay: {' '.join(map(str, left))}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
