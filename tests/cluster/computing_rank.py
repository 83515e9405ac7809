"""A rank of a run of large calls; behind each, one rank computes until all others have ended theirs."""

import ctypes
import os
import sys
import time
from pathlib import Path

from fault_rank import FLOAT32, SUM, meet, say

COUNT = 500_000
# Processor seconds that the computing rank waits for the others: load of the machine does not shorten them.
LONGEST = 3.0
# So little that the kernel cannot send the end of a call by itself.
SEND_BUFFER = "4096 16384 16384"


def main() -> None:
    """Arguments: libfccl, a folder that the hosts share, and whether the one that computes uses a stream."""
    fccl, folder, streams = ctypes.CDLL(sys.argv[1]), Path(sys.argv[2]), sys.argv[3] == "stream"
    fccl.fcclGetLastError.restype = ctypes.c_char_p
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    Path("/proc/sys/net/ipv4/tcp_wmem").write_text(SEND_BUFFER)
    comm, stream = ctypes.c_void_p(), ctypes.c_void_p()

    def check(code: int) -> None:
        if code:
            sys.exit(f"rank {rank}: {fccl.fcclGetLastError(None).decode()}")

    check(fccl.fcclCommInitRank(ctypes.byref(comm), ranks, meet(fccl, folder, rank), rank))
    check(fccl.fcclStreamCreate(ctypes.byref(stream)))
    whole, part = (ctypes.c_float * (COUNT * ranks))(), (ctypes.c_float * COUNT)()
    count = ctypes.c_size_t(COUNT)
    calls = {
        "all_gather": lambda on: fccl.fcclAllGather(part, whole, count, FLOAT32, comm, on),
        "reduce_scatter": lambda on: fccl.fcclReduceScatter(whole, part, count, FLOAT32, SUM, comm, on),
        "all_reduce": lambda on: fccl.fcclAllReduce(part, part, count, FLOAT32, SUM, comm, on),
        "broadcast": lambda on: fccl.fcclBroadcast(part, part, count, FLOAT32, 1, comm, on),
        "reduce": lambda on: fccl.fcclReduce(part, part, count, FLOAT32, SUM, 1, comm, on),
        "gather": lambda on: fccl.fcclGather(part, whole, count, FLOAT32, 1, comm, on),
        "scatter": lambda on: fccl.fcclScatter(whole, part, count, FLOAT32, 1, comm, on),
    }
    for name, call in calls.items():
        for computing in (1, ranks - 1):
            check(fccl.fcclBarrier(comm, None))
            ended = [folder / f"{name}.{computing}.{other}" for other in range(ranks) if other != computing]
            if rank != computing:
                check(call(None))
                (folder / f"{name}.{computing}.{rank}").touch()
                continue
            check(call(stream if streams else None))
            begin = time.thread_time()
            while not all(file.exists() for file in ended) and time.thread_time() - begin < LONGEST:
                pass
            waited = [file.name for file in ended if not file.exists()]
            check(fccl.fcclStreamSynchronize(stream))
            say({"call": name, "computing": rank, "waited": waited})
    check(fccl.fcclCommDestroy(comm))


if __name__ == "__main__":
    main()
