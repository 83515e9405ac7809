"""Calls by landing slots, in host memory and in that of GPUs: their bits, and how fast large ones are."""

from collections.abc import Iterator

from measured import Sweep
from programs import Ranks

GATHERS = ("all_gather", "broadcast")
SUMS = ("reduce_scatter", "all_reduce")
SERVED = {"host": GATHERS, "peer": (*GATHERS, *SUMS)}
SUMMED = ("float", "half", "bfloat16")  # the types for which there are kernels
# So small that short calls go by them, and have many steps.
SMALL_SLOTS = "65536"


def sweeps() -> Iterator[Sweep]:
    """What each kind of slots serves, first its bits, then large buffers on more and more ranks."""
    for path, collectives in SERVED.items():
        variables = {"FCCL_CUDA_PATH": path, "FCCL_CUDA_LANDING": SMALL_SLOTS}
        for name in collectives:
            for dtype in SUMMED if name in SUMS else SUMMED[:1]:
                flags = f"-b 48K -e 1536K -f 32 -n 1 -d {dtype}"
                yield Sweep(name, Ranks(3, "threads"), flags, f"bits, slots of path {path}", 1, variables)
    for path, collectives in SERVED.items():
        for name in collectives:
            for count in (2, 4, 8) if name != "broadcast" else ():
                case = f"large buffers, path {path}"
                variables = {"FCCL_CUDA_PATH": path}
                ranks = Ranks(count, "threads")
                yield Sweep(name, ranks, "-b 64M -e 64M -n 10", case, 1, variables, figures=True)
