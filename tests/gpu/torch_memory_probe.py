#!/usr/bin/env python3
"""Question 1 for torch's memory, with expandable segments and without: can another process map it?"""

import argparse
import array
import contextlib
import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

from rows import NO_GPU, Rows

ELEMENTS = 1 << 20  # of four bytes: in one piece of either kind of segment
SETTINGS = ("expandable_segments:False", "expandable_segments:True")
HANDLE_BYTES = 64
LIMIT = 90.0  # seconds for two processes that import torch
DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG


class Sharing:
    """The functions of libgpu_sharing.so; each raises RuntimeError with the library's text."""

    def __init__(self, library: Path) -> None:
        self._library = ctypes.CDLL(str(library))
        self._library.last_error.restype = ctypes.c_char_p

    def _call(self, name: str, *arguments: object) -> None:
        if getattr(self._library, name)(*arguments) != 0:
            raise RuntimeError(self._library.last_error().decode())

    def lend_by_ipc(self, pointer: int) -> tuple[dict, list[int]]:
        """What to tell the borrower, and no descriptors."""
        handle, offset = ctypes.create_string_buffer(HANDLE_BYTES), ctypes.c_size_t()
        self._call("lend_by_ipc", ctypes.c_void_p(pointer), handle, ctypes.byref(offset))
        return {"handle": handle.raw.hex(), "offset": offset.value}, []

    def lend_by_descriptor(self, pointer: int) -> tuple[dict, list[int]]:
        """What to tell the borrower, and the descriptor to send along."""
        descriptor, piece, offset = ctypes.c_int(), ctypes.c_size_t(), ctypes.c_size_t()
        results = [ctypes.byref(each) for each in (descriptor, piece, offset)]
        self._call("lend_by_descriptor", ctypes.c_void_p(pointer), *results)
        return {"piece": piece.value, "offset": offset.value}, [descriptor.value]

    def read(self, message: dict, descriptors: list[int], to: int, size: int) -> None:
        """Copies what was lent into memory of this process."""
        place = (ctypes.c_size_t(message["offset"]), ctypes.c_void_p(to), ctypes.c_size_t(size))
        if "handle" in message:
            self._call("read_by_ipc", bytes.fromhex(message["handle"]), *place)
        else:
            piece = ctypes.c_size_t(message["piece"])
            self._call("read_by_descriptor", ctypes.c_int(descriptors[0]), piece, *place)


def send(channel: socket.socket, message: dict, descriptors: list[int] | None = None) -> None:
    """One message, with descriptors."""
    socket.send_fds(channel, [json.dumps(message).encode()], descriptors or [])


def receive(channel: socket.socket) -> tuple[dict, list[int]]:
    """One message and its descriptors; EOFError if the other side has ended."""
    content, descriptors, _, _ = socket.recv_fds(channel, 4096, 1)
    if not content:
        raise EOFError("the other process has ended")
    return json.loads(content), list(array.array("i", descriptors))


def lend(sharing: Sharing, channel: socket.socket, rows: Rows, setting: str) -> None:
    """Offers one tensor by each way and prints what the borrower made of it."""
    import torch

    tensor = torch.arange(ELEMENTS, dtype=torch.int32, device="cuda")
    torch.cuda.synchronize()
    for way, lend_by in (("cudaIpc", sharing.lend_by_ipc), ("descriptor", sharing.lend_by_descriptor)):
        what = f"torch's memory by {way}"
        try:
            message, descriptors = lend_by(tensor.data_ptr())
        except RuntimeError as error:
            rows.say(setting, what, "unsupported", f"lending: {error}")
            continue
        send(channel, message, descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        answer, _ = receive(channel)
        note = json.dumps({name: message[name] for name in message if name != "handle"})
        if answer["error"]:
            rows.say(setting, what, "unsupported", f"mapping: {answer['error']}; {note}")
        else:
            rows.works(setting, what, answer["equal"], note)


def borrow(sharing: Sharing, channel: socket.socket) -> None:
    """Reads what is offered until the lender ends."""
    import torch

    expected = torch.arange(ELEMENTS, dtype=torch.int32, device="cuda")
    with contextlib.suppress(EOFError):
        while True:
            message, descriptors = receive(channel)
            got = torch.full_like(expected, -1)
            torch.cuda.synchronize()
            try:
                sharing.read(message, descriptors, got.data_ptr(), got.nbytes)
                send(channel, {"error": "", "equal": bool(torch.equal(got, expected))})
            except RuntimeError as error:
                send(channel, {"error": str(error)})
            for descriptor in descriptors:
                os.close(descriptor)


def take_part(role: str, number: int, library: Path, setting: str) -> int:
    """One of the two processes of a setting."""
    ctypes.CDLL(None).prctl(DIE_WITH_PARENT, signal.SIGKILL)
    channel = socket.socket(fileno=number)
    channel.settimeout(LIMIT)
    rows = Rows(1)
    if role == "lend":
        lend(Sharing(library), channel, rows, f"torch, {setting}")
    else:
        borrow(Sharing(library), channel)
    return 0 if rows.well else 1


def share(rows: Rows, library: Path, setting: str) -> None:
    """Runs the two processes of one setting, and ends both when one fails or the limit passes."""
    environment = os.environ | {"PYTORCH_CUDA_ALLOC_CONF": setting, "PYTORCH_ALLOC_CONF": setting}
    ends = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    processes = []
    for role, end in zip(("borrow", "lend"), ends, strict=True):
        words = [sys.executable, __file__, "--library", str(library), "--role", role]
        words += ["--channel", str(end.fileno()), "--setting", setting]
        processes.append(subprocess.Popen(words, env=environment, pass_fds=[end.fileno()]))
        end.close()
    borrower, lender = processes
    try:
        statuses = [lender.wait(LIMIT), borrower.wait(LIMIT)]
        if any(statuses):
            note = f"the lender ended with status {statuses[0]}, the borrower with {statuses[1]}"
            rows.say(f"torch, {setting}", "the whole case", "failed", note)
    except subprocess.TimeoutExpired:
        rows.say(f"torch, {setting}", "the whole case", "failed", f"not done after {LIMIT:.0f} s")
    finally:
        for process in processes:
            process.kill()
            process.wait()


def main() -> int:
    """Asks for each setting; the exit status is that of all probes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, help="not used: each setting has its own limit")
    parser.add_argument("--library", type=Path, required=True, help="libgpu_sharing.so")
    parser.add_argument("--role", choices=("lend", "borrow"), help="be one of the two processes")
    parser.add_argument("--channel", type=int, help="its socket")
    parser.add_argument("--setting", default="")
    given = parser.parse_args()
    if given.role:
        return take_part(given.role, given.channel, given.library, given.setting)
    rows = Rows(1)
    import torch

    if not torch.cuda.is_available():
        Sharing(given.library)
        rows.say("torch", "nothing was run", "not run", "torch sees no GPU")
        return NO_GPU
    for setting in SETTINGS:
        share(rows, given.library, setting)
    return 0 if rows.well else 1


if __name__ == "__main__":
    sys.exit(main())
