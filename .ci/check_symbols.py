"""Symbols: libfccl exports fccl* only, as it ever did, and needs nothing of MPI, torch, libfabric or CUDA."""

import re
import subprocess
from collections.abc import Iterator

from check_interface import kept_functions
from tree import Fault, Tree

LIBRARY = "build/libfccl.so"
EXPORTED = re.compile(r"(p?fccl[A-Z]\w*|FCCL_[0-9.]+)(@.*)?$")
FOREIGN = re.compile(r"(P?MPI_|ompi_|fi_[a-z]|cuda[A-Z]|cu[A-Z]|_ZN?K?(2at|3c10|4c10d|5torch))")
FOREIGN_LIBRARIES = re.compile(r"lib(mpi|open-rte|torch|c10|fabric|cuda|nccl|python)")


def faults(tree: Tree) -> Iterator[Fault]:
    if not (tree.root / LIBRARY).exists():
        yield Fault(LIBRARY, 1, "is not there; build it first (symbols)")
        return
    exported = symbols(tree, "--defined-only")
    for name in exported:
        if not EXPORTED.match(name):
            yield Fault(LIBRARY, 1, f"exports {name}, and may export fccl* only (symbols)")
    for name in set(kept_functions(tree)) - {name.partition("@")[0] for name in exported}:
        yield Fault(LIBRARY, 1, f"exports no {name} any more, which programs may use (symbols)")
    for name in symbols(tree, "--undefined-only"):
        if FOREIGN.match(name):
            yield Fault(LIBRARY, 1, f"needs {name}, which belongs to an optional library (symbols)")
    dynamic = subprocess.run(
        ["readelf", "-d", LIBRARY], cwd=tree.root, check=True, capture_output=True, text=True
    ).stdout
    for needed in re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic):
        if FOREIGN_LIBRARIES.match(needed):
            yield Fault(LIBRARY, 1, f"is linked to {needed}, which is optional (symbols)")


def symbols(tree: Tree, which: str) -> list[str]:
    said = subprocess.run(
        ["nm", "-D", which, LIBRARY], cwd=tree.root, check=True, capture_output=True, text=True
    ).stdout
    return [line.split()[-1] for line in said.splitlines() if line.split()[-2:-1] != ["w"]]
