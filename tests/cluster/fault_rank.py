"""A rank that repeats all-reduces until one fails, and prints when that was, its code and its text."""

import ctypes
import json
import os
import sys
import time
from pathlib import Path

ID_BYTES = 128
FLOAT32, SUM = 7, 0


class UniqueId(ctypes.Structure):
    _fields_ = [("internal", ctypes.c_ubyte * ID_BYTES)]


def main() -> None:
    """Arguments: libfccl, a folder that the hosts share, the number of elements."""
    fccl, folder, count = ctypes.CDLL(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    fccl.fcclGetLastError.restype = ctypes.c_char_p
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    comm = ctypes.c_void_p()
    unique_id = meet(fccl, folder, rank)
    if (folder / f"withhold.{rank}").exists():
        wait_for(folder / "release")
    else:
        (folder / f"in.{rank}").touch()
    if code := fccl.fcclCommInitRank(ctypes.byref(comm), ranks, unique_id, rank):
        text = fccl.fcclGetLastError(None).decode()
        say({"rank": rank, "at": time.monotonic(), "code": code, "text": text})
        sys.exit(f"rank {rank}: no communicator ({code}): {text}")
    values = (ctypes.c_float * count)()
    calls = 0
    while True:
        code = fccl.fcclAllReduce(
            values, values, ctypes.c_size_t(count), FLOAT32, SUM, comm, ctypes.c_void_p()
        )
        if code:
            break
        calls += 1
        if calls == 3:
            say({"rank": rank})
    at = time.monotonic()
    text = fccl.fcclGetLastError(comm).decode()
    destroying = time.monotonic()
    fccl.fcclCommDestroy(comm)
    destroyed = time.monotonic() - destroying
    say({"rank": rank, "at": at, "code": code, "text": text, "calls": calls, "destroyed": destroyed})


def say(what: dict) -> None:
    """In one piece, since all ranks write to one pipe."""
    os.write(1, f"{json.dumps(what)}\n".encode())


def meet(fccl: ctypes.CDLL, folder: Path, rank: int) -> UniqueId:
    """Rank 0's unique id, by a file."""
    file = folder / "id"
    if rank == 0:
        made = UniqueId()
        if fccl.fcclGetUniqueId(ctypes.byref(made)):
            sys.exit(fccl.fcclGetLastError(None).decode())
        (folder / "id.part").write_bytes(bytes(made))
        (folder / "id.part").rename(file)
    wait_for(file)
    return UniqueId.from_buffer_copy(file.read_bytes())


def wait_for(file: Path) -> None:
    deadline = time.monotonic() + 30
    while not file.exists():
        assert time.monotonic() < deadline
        time.sleep(0.002)


if __name__ == "__main__":
    main()
