"""Makes a folder with all that ./dev efa runs, for hosts with EFA, libfabric, Python and nothing of ours."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pack

ROOT = Path(__file__).resolve().parents[2]
MOST_BYTES = 40_000_000
FAILED = 1
PROGRAMS = (
    "fccl-info",
    *(f"perf_tests/{name}_perf" for name in ("all_gather", "reduce_scatter", "all_reduce", "sendrecv")),
    "perf_tests/libfccl_launch_network.so",
)
# The second one is looked for beside the first.
OWN = ("libfccl.so.0", "libfccl_ofi.so")
# Each host must have its own libraries of C and C++, and the libfabric that knows its EFA.
OF_THE_HOST = re.compile(
    r"^(ld-linux|libc\.|libm\.|libdl\.|libpthread\.|librt\.|libresolv\.|libgcc_s\.|libstdc\+\+|libfabric\.)"
)
SHARED = ("table.py", "kept.py", "starting.py")
# Amazon Linux 2023 has these; Ubuntu 22.04 has newer ones.
NEWEST = {"GLIBC": (2, 34), "GLIBCXX": (3, 4, 29)}
RUN = """#!/bin/sh
# Whether EFA works between these hosts, and how fast it is: run ./run --help.
here=$(cd "$(dirname "$0")" && pwd)
python3 -c 'import sys; sys.exit(sys.version_info < (3, 9))' 2>/dev/null || {
  echo "efa: $(hostname): this wants Python 3.9 or later in PATH as python3" >&2
  exit 2
}
export PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
exec python3 "$here/tools/efa/efa.py" "$@" --tree "$here/build" --run "$here/run" --libraries "$here/lib"
"""


def make(folder: Path, tree: Path) -> int:
    """The exit status; the folder must not be there, or be empty."""
    folder = folder.resolve()
    if folder.exists() and any(folder.iterdir()):
        return refuse(f"{folder} is not empty: name a folder that is not there yet")
    programs, own = [tree / name for name in PROGRAMS], [tree / name for name in OWN]
    if missing := [str(each) for each in [*programs, *own] if not each.exists()]:
        return refuse(f"not built: {', '.join(missing)}; ./dev efa --pack builds them first")
    for name, source in zip(PROGRAMS, programs, strict=True):
        pack.copy_stripped(source, folder / "build" / name)
    for name, path in libraries_of([*programs, *own]).items():
        pack.copy_stripped(path, folder / "lib" / name)
    copy_python(folder)
    if wrong := wrong_with(folder):
        return refuse(f"{folder} is of no use: {wrong}")
    size = size_of(folder)
    print(f"efa: {folder}: {size / 1e6:.1f} MB; carry it to a path that all hosts see, and run ./run there")
    return 0


def refuse(why: str) -> int:
    """Says why there is no folder."""
    print(f"efa: {why}", file=sys.stderr)
    return FAILED


def copy_python(folder: Path) -> None:
    """The steps, what they share with ./dev gpu, and the one command of the folder."""
    left_out = shutil.ignore_patterns("__pycache__", Path(__file__).name)
    shutil.copytree(ROOT / "tools/efa", folder / "tools/efa", ignore=left_out)
    (folder / "tools/gpu").mkdir()
    for name in SHARED:
        shutil.copy2(ROOT / "tools/gpu" / name, folder / "tools/gpu" / name)
    run = folder / "run"
    run.write_text(RUN)
    run.chmod(0o755)


def size_of(folder: Path) -> int:
    """Bytes of all its files."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def libraries_of(programs: Iterable[Path]) -> dict[str, Path]:
    """The libraries that these need, and those that these need in turn, without the host's own."""
    found: dict[str, Path] = {}
    left = list(programs)
    found |= {each.name: each for each in left if each.name in OWN}
    while left:
        program = left.pop()
        places = places_of(program)
        for name in needed_by(program):
            if name in found or OF_THE_HOST.match(name):
                continue
            found[name] = places[name]
            left.append(places[name])
    return found


def places_of(program: Path) -> dict[str, Path]:
    """Returns the file of each library that the program loads on this machine."""
    said = subprocess.run(["ldd", str(program)], capture_output=True, text=True).stdout
    return {name: Path(path) for name, path in re.findall(r"^\s*(\S+) => (/\S+) \(", said, re.MULTILINE)}


def needed_by(program: Path) -> list[str]:
    """The libraries that it names itself."""
    said = subprocess.run(["objdump", "-p", str(program)], capture_output=True, text=True).stdout
    return re.findall(r"^\s+NEEDED\s+(\S+)$", said, re.MULTILINE)


def newest_versions(program: Path) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The newest version of the libraries of C and C++ that it asks for."""
    said = subprocess.run(["objdump", "-p", str(program)], capture_output=True, text=True).stdout
    for library in NEWEST:
        versions = [
            tuple(map(int, found.split("."))) for found in re.findall(rf"\b{library}_([\d.]+)\b", said)
        ]
        if versions:
            yield library, max(versions)


def wrong_with(folder: Path) -> str:
    """Looks for faults that would otherwise show only on the hosts; "" if it finds nothing."""
    for file in sorted(folder.rglob("*")):
        if not file.is_file() or file.suffix == ".py" or file.name == "run":
            continue
        for library, version in newest_versions(file):
            if version > NEWEST[library]:
                wanted = f"{library}_{'.'.join(map(str, version))}"
                return f"{file.relative_to(folder)} wants {wanted}, which Amazon Linux 2023 does not have"
    if (size := size_of(folder)) > MOST_BYTES:
        return f"it has {size / 1e6:.1f} MB, more than {MOST_BYTES / 1e6:.0f} MB"
    return ""
