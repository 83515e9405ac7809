#!/usr/bin/env python3
"""Question 7: torch's current stream, events and allocator, by an adapter not linked with libtorch_cuda."""

import argparse
import ctypes
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from rows import NO_GPU, Rows

SOURCE = Path(__file__).with_name("torch_adapter.cpp")
SLEEP_CYCLES = 200_000_000  # of the GPU's clock: tenths of a second
BYTES = 32 << 20
KINDS = (ctypes.c_int, ctypes.c_size_t, ctypes.c_int)  # of the device, of bytes, of a yes or no


class Adapter:
    """The functions of torch_adapter.cpp, built for the torch of this Python."""

    def __init__(self, library: Path) -> None:
        self._library = ctypes.CDLL(str(library))
        self._library.last_error.restype = ctypes.c_char_p

    def call(self, name: str, *arguments: int) -> int:
        """What the function gives back; RuntimeError with its text if it fails."""
        given = ctypes.c_size_t()
        words = [kind(word) for kind, word in zip(KINDS, arguments, strict=False)]
        if getattr(self._library, name)(*words, ctypes.byref(given)) != 0:
            raise RuntimeError(f"{name}: {self._library.last_error().decode()}")
        return given.value


def build(rows: Rows, torch_folder: Path, folder: Path) -> Path:
    """Compiles the adapter and says what it is linked with."""
    library = folder / "libgpu_torch_adapter.so"
    headers = torch_folder / "include"
    command = ["g++", "-std=c++20", "-O2", "-fPIC", "-shared", "-fvisibility=hidden"]
    command += [str(SOURCE), "-o", str(library)]
    command += ["-isystem", str(headers), "-isystem", str(headers / "torch/csrc/api/include")]
    command += [f"-L{torch_folder / 'lib'}", "-Wl,--no-as-needed", "-lc10"]
    begin = time.monotonic()
    subprocess.run(command, check=True)
    rows.measured("building", "compiling the adapter", time.monotonic() - begin, "s")
    said = subprocess.run(["readelf", "-d", str(library)], check=True, capture_output=True, text=True).stdout
    needed = [line.split("[")[1].rstrip("]") for line in said.splitlines() if "NEEDED" in line]
    free = not any("cuda" in name or "torch" in name for name in needed)
    rows.works("building", "the adapter needs neither libtorch_cuda nor libc10_cuda", free, ", ".join(needed))
    return library


def check_stream(rows: Rows, adapter: Adapter) -> None:
    """The adapter finds the stream that torch calls current, also a side stream, and one that is captured."""
    import torch

    def agrees() -> bool:
        return adapter.call("current_stream", 0) == torch.cuda.current_stream().cuda_stream

    rows.works("stream", "the default stream is found", agrees())
    with torch.cuda.stream(torch.cuda.Stream()):
        rows.works("stream", "a side stream is found", agrees() and adapter.call("current_stream", 0) != 0)
    captured = []
    x = torch.zeros(1024, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        captured.append(agrees())
        x += 1
    rows.works("stream", "the stream that a graph captures is found", captured == [True])
    seconds = []
    for _ in range(1000):
        begin = time.perf_counter()
        adapter.call("current_stream", 0)
        seconds.append(time.perf_counter() - begin)
    note = "ctypes included; median of 1000"
    rows.measured("stream", "asking for the stream", statistics.median(seconds) * 1e6, "us", note)


def check_event(rows: Rows, adapter: Adapter) -> None:
    """Work on another stream begins when what the caller's stream had is done."""
    import torch

    x = torch.zeros(BYTES // 4, device="cuda")
    y = torch.full_like(x, -1)
    torch.cuda.synchronize()
    torch.cuda._sleep(SLEEP_CYCLES)
    x.fill_(7)
    other = torch.cuda.ExternalStream(adapter.call("order_behind_current", 0))
    with torch.cuda.stream(other):
        y.copy_(x)
    early = other.query()
    torch.cuda.synchronize()
    arrived = bool((y == 7).all())
    note = "" if arrived else "it read what was there before"
    rows.works("event", "another stream waits for the caller's", not early and arrived, note)


def check_allocator(rows: Rows, adapter: Adapter) -> None:
    """Memory of torch's allocator that another stream still uses is not given out again."""
    import torch

    # To get more memory than the allocator has could end the sleep.
    held = [torch.empty(BYTES, dtype=torch.uint8, device="cuda") for _ in range(3)]
    del held
    torch.cuda.synchronize()
    torch.cuda._sleep(SLEEP_CYCLES)
    first = adapter.call("allocate_and_free", 0, BYTES, 0)
    again = adapter.call("allocate_and_free", 0, BYTES, 0)
    recorded = adapter.call("allocate_and_free", 0, BYTES, 1)
    behind = adapter.call("allocate_and_free", 0, BYTES, 0)
    sleeping = not torch.cuda.current_stream().query()
    torch.cuda.synchronize()
    if not sleeping:
        raise RuntimeError("the stream had slept too short for this to mean anything")
    reused = first == again == recorded
    rows.works("allocator", "memory that no other stream uses is given out again", reused)
    rows.works("allocator", "memory that is recorded on a busy stream is not", behind != recorded)


def check(rows: Rows, case: str, part: Callable[[Rows, Adapter], None], adapter: Adapter) -> None:
    """One part; what it raises is a row and no end of the others."""
    try:
        part(rows, adapter)
    except Exception as error:
        rows.say(case, "the whole case", "failed", f"{type(error).__name__}: {error}")


def main() -> int:
    """Builds, loads, and, where there is a GPU, asks; the exit status is that of all probes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, help="not used: each part is short")
    parser.add_argument("--build", type=Path, required=True, help="the folder to build the adapter in")
    given = parser.parse_args()
    rows = Rows(7)
    import torch

    rows.say("building", "torch", "works", torch.__version__)
    adapter = Adapter(build(rows, Path(torch.__file__).parent, given.build))
    if not torch.cuda.is_available():
        rows.say("", "nothing was run", "not run", "torch sees no GPU; the adapter was built and loaded")
        return NO_GPU
    for case, part in (("stream", check_stream), ("event", check_event), ("allocator", check_allocator)):
        check(rows, case, part, adapter)
    return 0 if rows.well else 1


if __name__ == "__main__":
    sys.exit(main())
