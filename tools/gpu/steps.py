#!/usr/bin/env python3
"""One step of ./dev gpu: what the library does on a GPU, as rows of JSON, one a line."""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import conformance
import killed
import paths
import sums
import training
from measured import Sweep, measure, row
from programs import Programs, Ranks

NO_GPU = 77
SOMETHING_WRONG = 1
LOOK_SECONDS = 60
MAIN = ("all_gather", "reduce_scatter", "all_reduce")
EVERY = (*MAIN, "broadcast", "reduce", "gather", "scatter", "alltoall")
SHORT = "-b 1K -e 1M -f 1024 -n 5"


def bits_sweeps() -> Iterator[Sweep]:
    """Every type by every operator, on each path, against what the processor says the bits must be."""
    for path in ("blocking", "bounce"):
        for name in EVERY:
            yield Sweep(
                name,
                Ranks(2, "threads"),
                "-b 48 -e 192K -f 4096 -n 1 -d all -o all",
                f"bits, path {path}",
                variables={"FCCL_CUDA_PATH": path},
            )


def ranks_sweeps(are: str, counts: tuple[int, ...]) -> Iterator[Sweep]:
    """The collectives of sharded training on more and more ranks that share the GPU."""
    for count in counts:
        for name in MAIN:
            yield Sweep(name, Ranks(count, are), SHORT, f"ranks as {are}", figures=True)


def hosts_sweeps() -> Iterator[Sweep]:
    """Two hosts, which are one machine, over tcp."""
    variables = {"FCCL_TRANSPORT": "tcp"}
    for count in (2, 4):
        for name in MAIN:
            case = "two hosts of one machine, tcp"
            yield Sweep(name, Ranks(count, "processes"), SHORT, case, 2, variables, figures=True)


def perf_sweeps() -> Iterator[Sweep]:
    """Large buffers on either path, and one queue for all."""
    for path in ("blocking", "bounce"):
        for name in MAIN:
            case = f"large buffers, path {path}"
            variables = {"FCCL_CUDA_PATH": path}
            yield Sweep(
                name, Ranks(2, "threads"), "-b 64 -e 64M -f 1048576 -n 5", case, 1, variables, figures=True
            )
    for name in MAIN:
        variables = {"CUDA_DEVICE_MAX_CONNECTIONS": "1"}
        yield Sweep(name, Ranks(3, "processes"), SHORT, "one hardware queue each", 1, variables)


def swept(sweeps: Callable[[], Iterator[Sweep]]) -> Callable[[Programs, float], Iterator[dict]]:
    """A step of sweeps, each of which has its share of what its predecessors left over."""

    def step(programs: Programs, seconds: float) -> Iterator[dict]:
        end = time.monotonic() + seconds
        chosen = list(sweeps())
        for number, sweep in enumerate(chosen):
            left = end - time.monotonic()
            yield from measure(programs, sweep, left / (len(chosen) - number))

    return step


STEPS: dict[str, Callable[[Programs, float], Iterator[dict]]] = {
    "conformance": conformance.rows,
    "bits": swept(bits_sweeps),
    "threads": swept(lambda: ranks_sweeps("threads", (2, 3, 4, 8))),
    "processes": swept(lambda: ranks_sweeps("processes", (2, 3, 4))),
    "kill": killed.rows,
    "hosts": swept(hosts_sweeps),
    "fsdp": training.rows,
    "perf": swept(perf_sweeps),
    "slots": swept(paths.sweeps),
    "fsdp_paths": training.rows_of_paths,
    "sums": sums.rows,
}


def gpus_of(programs: Programs) -> str:
    """The output of fccl-info on the GPUs here, or why it had none."""
    try:
        asked = subprocess.run([programs.info, "gpus"], capture_output=True, text=True, timeout=LOOK_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"fccl-info could not be asked: {error}"
    return asked.stdout or asked.stderr


def say(told: dict) -> dict:
    """Prints one row at once, so that it is kept whatever comes after it."""
    print(json.dumps(told), flush=True)
    return told


def main(words: list[str]) -> int:
    """The exit status of a probe: 0, 1 if something was wrong or failed, 77 without a GPU."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("step", choices=STEPS)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--tree", type=Path, required=True, help="where the built programs lie")
    given = parser.parse_args(words)
    programs = Programs(given.tree.resolve())
    if not Path(programs.info).exists():
        say(row("nothing was run", "not run", f"the library is not built: there is no {programs.info}"))
        return NO_GPU
    gpus = gpus_of(programs)
    if not gpus.startswith("gpu 0 "):
        say(row("nothing was run", "not run", gpus.strip()))
        if given.step == "fsdp" and (lack := training.ask()[2]):
            say(row("what training also lacks", "not run", lack, case=training.CASE))
        return NO_GPU
    bad = [
        told
        for told in map(say, STEPS[given.step](programs, given.seconds))
        if told["verdict"] in ("wrong", "failed")
    ]
    return SOMETHING_WRONG if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
