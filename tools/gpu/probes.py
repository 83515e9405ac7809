"""The probes there are: their programs and their order."""

from dataclasses import dataclass
from pathlib import Path

# The most wanted answers first, in case that the time is too short.
NAMES = ("memory_operations", "graphs", "enqueue", "progress", "sharing")
# The laws of a device, which need the library and so its own build; left out where that has not been built.
CONFORMANCE = Path("build/tests/devices/conformance_probe")


@dataclass(frozen=True)
class Probe:
    """One program: its name in the table and its words."""

    name: str
    words: list[str]


def all_probes(build: Path) -> list[Probe]:
    """As they were built in this folder."""
    probes = [Probe(name, [str(build / f"{name}_probe")]) for name in NAMES]
    return [*probes, Probe("conformance", [str(CONFORMANCE)])] if CONFORMANCE.exists() else probes
