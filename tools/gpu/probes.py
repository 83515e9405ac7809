"""What is run on a GPU: the programs, and their order."""

import sys
from dataclasses import dataclass
from pathlib import Path

# The most wanted answers first, in case that the time is too short.
PROBES = ("memory_operations", "enqueue", "blocking", "progress", "sharing", "graphs")
# Probes whose answers may be others where all streams share one queue.
WITH_ONE_QUEUE = ("enqueue", "blocking")
STEPS = ("conformance", "bits", "threads", "processes", "kill", "hosts", "fsdp", "perf")
STEPS_PROGRAM = Path(__file__).with_name("steps.py")


@dataclass(frozen=True)
class Probe:
    """One program: its name in the table and its words."""

    name: str
    words: list[str]


def all_probes(build: Path, tree: Path) -> list[Probe]:
    """Probes as they were built in `build`, and steps over the programs of `tree`."""
    asked = [Probe(name, [str(build / f"{name}_probe")]) for name in PROBES]
    connections = ["env", "CUDA_DEVICE_MAX_CONNECTIONS=1"]
    asked += [
        Probe(f"{name}_with_one_queue", [*connections, str(build / f"{name}_probe")])
        for name in WITH_ONE_QUEUE
    ]
    steps = [Probe(name, [sys.executable, str(STEPS_PROGRAM), name, "--tree", str(tree)]) for name in STEPS]
    first = [step for step in steps if step.name in ("conformance", "bits")]
    return first + asked + [step for step in steps if step not in first]
