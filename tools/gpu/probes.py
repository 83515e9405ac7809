"""The programs that run on a GPU, their order, and the time of each."""

import sys
from dataclasses import dataclass
from pathlib import Path

# The least that tells whether anything works at all; the one probe that must find the GPU closed.
FIRST = "first_minute"
PROBES = (FIRST, "memory_operations", "enqueue", "blocking", "progress", "sharing", "graphs")
ONE_QUEUE = "_with_one_queue"
STEPS = (
    "conformance",
    "bits",
    "threads",
    "processes",
    "kill",
    "hosts",
    "fsdp",
    "perf",
    "slots",
    "fsdp_paths",
    "sums",
)
STEPS_PROGRAM = Path(__file__).with_name("steps.py")
# In their order, with their seconds, the most wanted answers first. A part is one command of 8 minutes.
PARTS = {
    "first": {FIRST: 140, "conformance": 50, "processes": 70, "kill": 40, "fsdp": 160},
    "second": {"bits": 210, "hosts": 70, "threads": 80, "perf": 100},
    "third": {
        "memory_operations": 90,
        "enqueue": 60,
        "blocking": 70,
        "progress": 70,
        "sharing": 60,
        "graphs": 30,
        # The answers may differ if all streams share one queue.
        f"enqueue{ONE_QUEUE}": 40,
        f"blocking{ONE_QUEUE}": 40,
    },
    "fourth": {"slots": 150, "sums": 90, "fsdp_paths": 230},
}


@dataclass(frozen=True)
class Probe:
    """One program: its name in the table, its words, and its share of the seconds."""

    name: str
    words: list[str]
    seconds: float = 60


def all_probes(build: Path, tree: Path) -> list[Probe]:
    """Probes as they were built in `build`, and steps over the programs of `tree`."""
    shares = {name: seconds for part in PARTS.values() for name, seconds in part.items()}
    return [Probe(name, words_of(name, build, tree), seconds) for name, seconds in shares.items()]


def words_of(name: str, build: Path, tree: Path) -> list[str]:
    """The command line of one probe or step."""
    if name in STEPS:
        return [sys.executable, str(STEPS_PROGRAM), name, "--tree", str(tree)]
    words = ["env", "CUDA_DEVICE_MAX_CONNECTIONS=1"] if name.endswith(ONE_QUEUE) else []
    return [*words, str(build / f"{name.removesuffix(ONE_QUEUE)}_probe")]
