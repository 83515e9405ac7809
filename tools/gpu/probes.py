"""The probes there are: their programs, their order, and the Python and the NCCL that they run with."""

import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "tests" / "gpu"
# The Python of the system, and those of the environments that ./dev makes.
PYTHONS = (sys.executable, "python3", *map(str, sorted(ROOT.glob(".venv*/bin/python"))))
FIND_TORCH = "from importlib.util import find_spec; print(find_spec('torch').submodule_search_locations[0])"


@dataclass(frozen=True)
class Probe:
    """One program: its name in the table, its words and its environment; without words it cannot run."""

    name: str
    words: list[str]
    environment: dict[str, str] = field(default_factory=dict)
    missing: str = ""  # why it has no words


def all_probes(build: Path) -> list[Probe]:
    """The most wanted answers first, in case that the time is too short."""
    python, torch = python_with_torch()
    nccl = nccl_beside(torch) if torch else None
    return [
        Probe("sharing", [str(build / "sharing_probe")]),
        Probe("memory_operations", [str(build / "memory_operations_probe")]),
        Probe("graphs", [str(build / "graphs_probe")]),
        Probe("progress", [str(build / "progress_probe")]),
        Probe("copies", [str(build / "copies_probe")]),
        Probe("reduction", [str(build / "reduction_probe")]),
        Probe("enqueue", [str(build / "enqueue_probe")]),
        with_torch("torch_memory", python, ["--library", str(build / "libgpu_sharing.so")]),
        with_torch("torch", python, ["--build", str(build)]),
        Probe("nccl", [str(build / "nccl_probe")], {"FCCL_GPU_NCCL": str(nccl)} if nccl else {}),
    ]


def with_torch(name: str, python: str | None, words: list[str]) -> Probe:
    """A probe written in Python."""
    if python is None:
        return Probe(name, [], missing="no Python with torch was found: neither python3 nor one of .venv*")
    return Probe(name, [python, str(SOURCES / f"{name}_probe.py"), *words])


def python_with_torch() -> tuple[str | None, Path | None]:
    """The first Python that finds torch, and torch's folder; torch itself is not imported."""
    for python in PYTHONS:
        if not shutil.which(python):
            continue
        said = subprocess.run([python, "-c", FIND_TORCH], capture_output=True, text=True)
        if said.returncode == 0:
            return python, Path(said.stdout.strip())
    return None, None


def nccl_beside(torch: Path) -> Path | None:
    """The NCCL that torch's wheel brings, in the folder of packages beside it."""
    found = sorted(torch.parent.glob("nvidia/nccl/lib/libnccl.so.*"))
    return found[0] if found else None
