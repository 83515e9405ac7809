"""Makes a folder with all that ./dev gpu runs, for a machine with a driver, Python and nothing of ours."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import probes

ROOT = Path(__file__).resolve().parents[2]
MOST_BYTES = 60_000_000
WANTED_PYTHON, WANTED_TORCH = "3.12", "2.11"
FAILED = 1
# What every machine has that torch runs on; its own must be used.
EVERYWHERE = re.compile(
    r"^(ld-linux|libc\.|libm\.|libdl\.|libpthread\.|librt\.|libresolv\.|libgcc_s\.|libstdc\+\+)"
)
PROGRAMS = ("fccl-info", "perf_tests/libfccl_launch_local.so", "tests/devices/cuda_conformance_test")
LIBRARIES = ("libfccl.so.0", "libfccl_ofi.so")
RUN = """#!/bin/sh
# What the library does on this machine's GPU: one table, and gpu.json. Takes the arguments of ./dev gpu.
here=$(cd "$(dirname "$0")" && pwd)
export LD_LIBRARY_PATH="$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export PYTHONPATH="$here/python${PYTHONPATH:+:$PYTHONPATH}"
exec python3 "$here/tools/gpu/gpu.py" --build "$here/build-gpu" --tree "$here/build" --json gpu.json "$@"
"""
ASK_PYTHON = "import sys, torch; print('%d.%d' % sys.version_info[:2], torch.__version__)"


def make(folder: Path, build: Path, tree: Path) -> int:
    """The exit status; the folder must not be there, or be empty."""
    if folder.exists() and any(folder.iterdir()):
        print(f"gpu: {folder} is not empty: name a folder that is not there yet", file=sys.stderr)
        return FAILED
    copied = list(copy_programs(folder, build, tree))
    copy_libraries(folder, [*copied, *(tree / name for name in LIBRARIES)])
    copy_python(folder)
    missing = adapter_for_torch(folder)
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    print(
        f"gpu: {folder}: {size / 1e6:.1f} MB; run it there by ./run, which takes the arguments of ./dev gpu"
    )
    if missing:
        print(f"gpu: without the torch backend, so training is not run there: {missing}")
    if size > MOST_BYTES:
        print(f"gpu: {folder} has more than {MOST_BYTES / 1e6:.0f} MB", file=sys.stderr)
        return FAILED
    return 0


def copy_programs(folder: Path, build: Path, tree: Path) -> Iterator[Path]:
    """Programs without their symbols; what was not built is left out, and said."""
    wanted = [(build / f"{name}_probe", Path("build-gpu") / f"{name}_probe") for name in probes.PROBES]
    perf = sorted(path.relative_to(tree) for path in (tree / "perf_tests").glob("*_perf"))
    wanted += [(tree / name, Path("build") / name) for name in (*PROGRAMS, *perf)]
    for source, place in wanted:
        if not source.exists():
            print(f"gpu: not built, so not in the folder: {source}")
            continue
        copy_stripped(source, folder / place)
        yield source


def copy_stripped(source: Path, target: Path) -> None:
    """A copy without symbols; a whole one where strip will not."""
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(source, target)
    subprocess.run(["strip", str(target)], check=False, stderr=subprocess.DEVNULL)


def copy_libraries(folder: Path, programs: list[Path]) -> None:
    """The shared libraries that these need, in one folder, by the names under which they are asked for."""
    needed = {name: path for program in programs if program.exists() for name, path in libraries_of(program)}
    needed |= {
        program.name: program for program in programs if program.name in LIBRARIES and program.exists()
    }
    for name, path in needed.items():
        copy_stripped(path, folder / "lib" / name)


def libraries_of(program: Path) -> Iterator[tuple[str, Path]]:
    """Name and place of each shared library, without what every machine has."""
    said = subprocess.run(["ldd", str(program)], capture_output=True, text=True)
    for name, path in re.findall(r"^\s*(\S+) => (/\S+) \(", said.stdout, re.MULTILINE):
        if not EVERYWHERE.match(name):
            yield name, Path(path)


def copy_python(folder: Path) -> None:
    """The runner, the trainer, and the one command of the folder."""
    left_out = shutil.ignore_patterns("__pycache__", "tests")
    for name in ("tools/gpu", "trainer"):
        shutil.copytree(ROOT / name, folder / name, ignore=left_out, dirs_exist_ok=True)
    run = folder / "run"
    run.write_text(RUN)
    run.chmod(0o755)


def adapter_for_torch(folder: Path) -> str:
    """Builds the torch backend by FCCL_PACK_PYTHON into the folder; the reason where it could not."""
    python = os.environ.get("FCCL_PACK_PYTHON", f"python{WANTED_PYTHON}")
    wanted = f"Python {WANTED_PYTHON} with torch {WANTED_TORCH}"
    ask = f"set FCCL_PACK_PYTHON to one that also has scikit-build-core (it is '{python}')"
    try:
        asked = subprocess.run([python, "-c", ASK_PYTHON], capture_output=True, text=True)
    except OSError as error:
        return f"no {wanted}: {error}; {ask}"
    version, _, torch = asked.stdout.strip().partition(" ")
    if version != WANTED_PYTHON or not torch.startswith(WANTED_TORCH + "."):
        said = asked.stdout.strip() or asked.stderr.strip().splitlines()[-1]
        return f"no {wanted}: {python} says '{said}'; {ask}"
    words = [python, "-m", "pip", "install", "--no-build-isolation", "--no-deps", "--no-compile", "--quiet"]
    built = subprocess.run(
        [*words, "--target", str(folder / "python"), str(ROOT)], capture_output=True, text=True
    )
    return "" if built.returncode == 0 else f"the build failed: {built.stderr.strip()[-400:]}"
