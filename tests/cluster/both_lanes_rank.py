"""A rank that gathers and reduces at once, again and again; it says when each time began and ended."""

import ctypes
import os
import sys
import time
from pathlib import Path

from fault_rank import FLOAT32, SUM, meet, say

REPETITIONS = 9


def main() -> None:
    """Arguments: libfccl, a folder that the hosts share, the bytes that each of both calls moves."""
    fccl, folder, size = ctypes.CDLL(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    fccl.fcclGetLastError.restype = ctypes.c_char_p
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    comm, gathers, reductions = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()

    def check(code: int) -> None:
        if code:
            sys.exit(f"rank {rank}: {fccl.fcclGetLastError(None).decode()}")

    check(fccl.fcclCommInitRank(ctypes.byref(comm), ranks, meet(fccl, folder, rank), rank))
    check(fccl.fcclStreamCreate(ctypes.byref(gathers)))
    check(fccl.fcclStreamCreate(ctypes.byref(reductions)))
    elements = size // ctypes.sizeof(ctypes.c_float)
    block = ctypes.c_size_t(elements // ranks)
    gathered, reduced = (ctypes.c_float * elements)(), (ctypes.c_float * elements)()
    mine, sums = (ctypes.c_float * block.value)(), (ctypes.c_float * block.value)()
    # The first time finds memory that was never touched.
    for repetition in range(1 + REPETITIONS):
        check(fccl.fcclBarrier(comm, None))
        begin = time.monotonic()
        check(fccl.fcclAllGather(mine, gathered, block, FLOAT32, comm, gathers))
        check(fccl.fcclReduceScatter(reduced, sums, block, FLOAT32, SUM, comm, reductions))
        check(fccl.fcclStreamSynchronize(gathers))
        check(fccl.fcclStreamSynchronize(reductions))
        if repetition > 0:
            say({"repetition": repetition, "begin": begin, "end": time.monotonic()})
    check(fccl.fcclCommDestroy(comm))


if __name__ == "__main__":
    main()
