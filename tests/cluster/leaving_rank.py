"""A rank that makes one large call, says what came of it, and is gone at once, with a word or without."""

import ctypes
import os
import sys
from pathlib import Path

from fault_rank import FLOAT32, SUM, meet, say

COUNT = 2_000_000


def main() -> None:
    """Arguments: libfccl, a folder that the hosts share, the collective, and how to leave."""
    fccl, folder, collective, way = ctypes.CDLL(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], sys.argv[4]
    fccl.fcclGetLastError.restype = ctypes.c_char_p
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    comm = ctypes.c_void_p()
    code = fccl.fcclCommInitRank(ctypes.byref(comm), ranks, meet(fccl, folder, rank), rank)
    count = ctypes.c_size_t(COUNT)
    values, gathered = (ctypes.c_float * COUNT)(), (ctypes.c_float * (COUNT * ranks))()
    if code == 0 and collective == "all_gather":
        code = fccl.fcclAllGather(values, gathered, count, FLOAT32, comm, None)
    elif code == 0 and collective == "all_reduce":
        code = fccl.fcclAllReduce(values, values, count, FLOAT32, SUM, comm, None)
    elif code == 0:
        code = fccl.fcclBroadcast(values, values, count, FLOAT32, 0, comm, None)
    say({"rank": rank, "code": code, "text": fccl.fcclGetLastError(comm).decode()})
    if way == "exit":
        os._exit(0)
    fccl.fcclCommDestroy(comm)


if __name__ == "__main__":
    main()
