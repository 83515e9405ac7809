"""A rank that joins a communicator and prints what of a processor that took."""

import ctypes
import os
import sys
import time
from pathlib import Path

from fault_rank import meet, say


def main() -> None:
    """Arguments: libfccl, a folder that the hosts share."""
    fccl, folder = ctypes.CDLL(sys.argv[1]), Path(sys.argv[2])
    fccl.fcclGetLastError.restype = ctypes.c_char_p
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    comm = ctypes.c_void_p()
    unique_id = meet(fccl, folder, rank)
    before = time.process_time()
    if code := fccl.fcclCommInitRank(ctypes.byref(comm), ranks, unique_id, rank):
        sys.exit(f"rank {rank}: {code}: {fccl.fcclGetLastError(None).decode()}")
    say({"rank": rank, "processor": time.process_time() - before})
    if code := fccl.fcclBarrier(comm, None):
        sys.exit(f"rank {rank}: {code}: {fccl.fcclGetLastError(comm).decode()}")
    fccl.fcclCommDestroy(comm)


if __name__ == "__main__":
    main()
