"""Checks what nvcc makes of src/kernels/gpu/sum.cu: registers, spills, and no fused addition. Needs no GPU.

A tool that is missing is a line that says so, and what it would have shown is left out.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = "src/kernels/gpu/sum.cu"
HEADER = "src/kernels/gpu/sum.h"
ARCHITECTURES = ("sm_80", "sm_90", "sm_100")
KERNELS = 105
MOST_REGISTERS = 64

ENTRY = re.compile(r"Compiling entry function '(\w+)' for '(\w+)'")
SPILLS = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
REGISTERS = re.compile(r"Used (\d+) registers")
FUNCTION = re.compile(r"^\s*Function : (\w+)$")
INSTRUCTION = re.compile(r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\d+\s+)?([A-Z][A-Z0-9]*)")
# The instructions on float32 and float64, and on pairs of float32. HFMA2 is how ptxas loads a constant.
FUSED = ("FFMA", "FFMA2", "DFMA")
ADDITIONS = ("FADD", "FADD2")


class MissingToolError(Exception):
    """A tool that is not on this machine."""


@dataclass
class Compiled:
    """The figures of ptxas for one kernel; -1 where it said nothing."""

    registers: int = -1
    spilled: int = -1


def kernels_of(report: str) -> dict[str, Compiled]:
    """The kernels of a report that ptxas has written with -v."""
    kernels: dict[str, Compiled] = {}
    last = Compiled()
    for line in report.splitlines():
        if found := ENTRY.search(line):
            last = kernels.setdefault(found[1], Compiled())
        elif found := SPILLS.search(line):
            last.spilled = sum(map(int, found.groups()))
        elif found := REGISTERS.search(line):
            last.registers = int(found[1])
    return kernels


def faults_of_report(report: str, names: list[str]) -> Iterator[str]:
    kernels = kernels_of(report)
    for name in sorted(set(names) ^ set(kernels)):
        yield f"{name} {'was not compiled' if name in names else 'is no kernel of ' + HEADER}"
    for name, kernel in kernels.items():
        if not 0 < kernel.registers <= MOST_REGISTERS:
            yield f"{name} takes {kernel.registers} registers, not 1 to {MOST_REGISTERS}"
        if kernel.spilled != 0:
            yield f"{name} spills {kernel.spilled} bytes, or has a stack of so many"


def instructions_of(listing: str) -> dict[str, list[str]]:
    """The names of each kernel's instructions in a listing of cuobjdump."""
    kernels: dict[str, list[str]] = {}
    last: list[str] = []
    for line in listing.splitlines():
        if found := FUNCTION.match(line):
            last = kernels.setdefault(found[1], [])
        elif found := INSTRUCTION.search(line):
            last.append(found[1])
    return kernels


def faults_of_listing(listing: str, names: list[str]) -> Iterator[str]:
    kernels = instructions_of(listing)
    for name in names:
        instructions = kernels.get(name, [])
        # A listing that is not understood has no fused addition either.
        if not set(ADDITIONS) & set(instructions):
            yield f"the listing shows no addition in {name}"
        for fused in sorted(set(FUSED) & set(instructions)):
            yield f"{name} has {instructions.count(fused)} {fused}: fused, so not the bits of src/kernels"


def run(*command: str | Path, also_in_path: Path | None = None) -> str:
    path = os.pathsep.join([*([str(also_in_path)] if also_in_path else []), os.environ.get("PATH", "")])
    environment = {**os.environ, "PATH": path}
    ended = subprocess.run(
        [*map(str, command)], cwd=ROOT, text=True, capture_output=True, check=False, env=environment
    )
    if ended.returncode != 0:
        sys.exit(f"{command[0]} ended with {ended.returncode}:\n{ended.stdout}{ended.stderr}")
    return ended.stdout + ended.stderr


def find(tool: str, folders: list[Path]) -> Path:
    if found := shutil.which(tool, path=os.pathsep.join([os.environ.get("PATH", ""), *map(str, folders)])):
        return Path(found)
    raise MissingToolError(f"there is no {tool} in PATH, nor in {', '.join(map(str, folders))}")


def names_of_kernels() -> list[str]:
    """As the compiler of C++ sees them, which knows nothing of nvcc."""
    text = f'#include "{ROOT / HEADER}"\nNAMES: FCCL_EACH_SUM(FCCL_NAME)\n'
    with tempfile.NamedTemporaryFile("w", suffix=".cpp") as source:
        source.write(text)
        source.flush()
        name_alone = "-DFCCL_NAME(name,op,In,Out,sources)=name"
        shown = run(os.environ.get("CXX", "c++"), "-std=c++20", "-E", "-P", name_alone, source.name)
    return shown.partition("NAMES:")[2].split()


def compile_for(architecture: str, nvcc: Path, cubin: Path) -> str:
    flags = ["-std=c++20", "-O3", "--fmad=false", "-Xptxas=-v", f"-arch={architecture}", "-I", ROOT / "src"]
    return run(nvcc, *flags, "-cubin", "-o", cubin, ROOT / SOURCE)


def check(architecture: str, nvcc: Path, disassembler: Path | None, names: list[str]) -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        cubin = Path(folder) / "sum.cubin"
        report = compile_for(architecture, nvcc, cubin)
        # It runs nvdisasm, which lies beside it.
        listing = (
            run(disassembler, "--dump-sass", cubin, also_in_path=disassembler.parent) if disassembler else ""
        )
    faults = list(faults_of_report(report, names))
    kernels = kernels_of(report).values()
    said = (
        f"{len(kernels)} kernels, at most {max((each.registers for each in kernels), default=0)} registers, "
    )
    said += f"{sum(each.spilled for each in kernels)} bytes spilled"
    if disassembler:
        faults += faults_of_listing(listing, names)
        every = [name for kernel in instructions_of(listing).values() for name in kernel]
        said += f", {sum(map(every.count, ADDITIONS))} additions, {sum(map(every.count, FUSED))} fused"
    print(f"{architecture}: {said}", flush=True)
    return [f"{architecture}: {fault}" for fault in faults]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tools", type=Path, action="append", default=[], help="a folder with cuobjdump")
    folders = [*parser.parse_args().tools, Path(os.environ.get("CUDA_PATH", "/usr/local/cuda")) / "bin"]
    names = names_of_kernels()
    if len(set(names)) != KERNELS:
        print(f"{HEADER} has {len(set(names))} kernels, not {KERNELS}")
        return 1
    try:
        nvcc = find("nvcc", folders)
    except MissingToolError as missing:
        print(f"skipped: {SOURCE} was not compiled: {missing}")
        return 0
    disassembler = None
    try:
        disassembler = find("cuobjdump", folders)
        find("nvdisasm", [*folders, disassembler.parent])
    except MissingToolError as missing:
        print(f"skipped: fused additions were not looked for: {missing}")
        disassembler = None
    faults = [fault for each in ARCHITECTURES for fault in check(each, nvcc, disassembler, names)]
    print("\n".join(faults) if faults else "nvcc makes of the sums what it must")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
