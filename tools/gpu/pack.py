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
LEAST_PYTHON, WANTED_TORCH = (3, 10), "2.11"
FAILED = 1
# Libraries that every machine with torch has; each machine must use its own.
EVERYWHERE = re.compile(
    r"^(ld-linux|libc\.|libm\.|libdl\.|libpthread\.|librt\.|libresolv\.|libgcc_s\.|libstdc\+\+)"
)
PROGRAMS = ("fccl-info", "perf_tests/libfccl_launch_local.so", "tests/devices/cuda_conformance_test")
LIBRARIES = ("libfccl.so.0", "libfccl_ofi.so")
RUN = """#!/bin/sh
# What the library does on this machine's GPU: one table, and its rows. Takes the arguments of ./dev gpu.
here=$(cd "$(dirname "$0")" && pwd)
# Who carried the folder may have dropped its modes.
chmod -R u+x "$here/build" "$here/build-gpu" 2>/dev/null
export LD_LIBRARY_PATH="$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export PYTHONPATH="$here/python${PYTHONPATH:+:$PYTHONPATH}"
export PYTHONUNBUFFERED=1
echo "gpu: $(command -v python3), $(python3 --version)"
exec python3 "$here/tools/gpu/gpu.py" --build "$here/build-gpu" --tree "$here/build" --out "${OUT:-.}" "$@"
"""
ASK_PYTHON = "import sys, torch; print('%d.%d' % sys.version_info[:2], torch.__version__)"
# A function of the driver's that only a library with the device asks for.
OF_DEVICE = b"cuMemHostRegister_v2"
LIBRARY = "libfccl.so.0"
ADAPTER = Path("python") / "fccl" / f"libfccl_torch-{WANTED_TORCH}.so"


def make(folder: Path, build: Path, tree: Path, without_torch: bool = False) -> int:
    """The exit status; the folder must not be there, or be empty."""
    folder = folder.resolve()
    if folder.exists() and any(folder.iterdir()):
        print(f"gpu: {folder} is not empty: name a folder that is not there yet", file=sys.stderr)
        return FAILED
    python, missing = (None, "") if without_torch else python_with_torch()
    if missing:
        print(f"gpu: {missing}", file=sys.stderr)
        return FAILED
    copied = list(copy_programs(folder, build, tree))
    copy_libraries(folder, [*copied, *(tree / name for name in LIBRARIES)])
    copy_python(folder)
    wrong = build_adapter(folder, python) if python else ""
    if wrong := wrong or wrong_with(folder, with_torch=python is not None):
        print(f"gpu: {folder} is of no use: {wrong}", file=sys.stderr)
        return FAILED
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    print(
        f"gpu: {folder}: {size / 1e6:.1f} MB; run it there by ./run, which takes the arguments of ./dev gpu"
    )
    if without_torch:
        print("gpu: without the torch backend, so training is not run there")
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


def python_with_torch() -> tuple[str | None, str]:
    """A Python for whose torch the backend can be built, or what there is instead; it serves any Python."""
    named = os.environ.get("FCCL_PACK_PYTHON")
    environments = sorted(ROOT.glob(f".venv-{WANTED_TORCH}.*/bin/python"))
    told = []
    for python in [named] if named else [*map(str, environments), "python3"]:
        try:
            asked = subprocess.run([python, "-c", ASK_PYTHON], capture_output=True, text=True)
        except OSError as error:
            told.append(str(error))
            continue
        version, _, torch = asked.stdout.strip().partition(" ")
        is_new = version and tuple(map(int, version.split("."))) >= LEAST_PYTHON
        if is_new and torch.startswith(WANTED_TORCH + "."):
            return python, ""
        said = asked.stdout.strip() or (asked.stderr.strip().splitlines() or ["nothing"])[-1]
        told.append(f"{python} says '{said}'")
    wanted = (
        f"Python {'.'.join(map(str, LEAST_PYTHON))} or later with torch {WANTED_TORCH} and scikit-build-core"
    )
    asks = f"FCCL_TORCH={WANTED_TORCH}.0 ./dev gpu --pack makes one, FCCL_PACK_PYTHON names one"
    return None, f"no {wanted} ({'; '.join(told)}): {asks}, --without-torch packs without the torch backend"


def build_adapter(folder: Path, python: str) -> str:
    """Builds the torch backend into the folder; why it could not."""
    words = [python, "-m", "pip", "install", "--no-build-isolation", "--no-deps", "--no-compile", "--quiet"]
    words += [
        "--target",
        str(folder / "python"),
        "--config-settings",
        "build-dir=build/torch-pack",
        str(ROOT),
    ]
    environment = dict(os.environ)
    # Not resolved: an environment is where its link lies.
    environment["PATH"] = f"{Path(shutil.which(python) or python).absolute().parent}:{environment['PATH']}"
    if shutil.which("ccache"):
        environment.setdefault("CMAKE_CXX_COMPILER_LAUNCHER", "ccache")
    built = subprocess.run(words, capture_output=True, text=True, env=environment, cwd=ROOT)
    if built.returncode != 0:
        return f"the build of the torch backend failed: {built.stderr.strip()[-400:]}"
    subprocess.run(["strip", str(folder / ADAPTER)], check=False, stderr=subprocess.DEVNULL)
    return ""


def wrong_with(folder: Path, with_torch: bool) -> str:
    """Looks for faults that would otherwise show only on the machine with a GPU; "" if it finds nothing."""
    # The adapter asks the driver for nothing: the library beside it does.
    libraries = [Path("lib") / LIBRARY, *([ADAPTER.with_name(LIBRARY)] if with_torch else [])]
    for name in libraries:
        if not (folder / name).exists():
            return f"it has no {name}"
        if OF_DEVICE not in (folder / name).read_bytes():
            return f"{name} was built without CUDA: install CUDA's headers, or set CUDA_PATH"
    if not with_torch:
        return ""
    return "" if (folder / ADAPTER).exists() else f"it has no {ADAPTER}"
