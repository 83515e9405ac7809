"""Surroundings for the commands of pages: an installed prefix, an image of the sources, an environment."""

import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from pages import PROGRAMS, ROOT, blocks_of, program_of

BUILD = ROOT / "build"
TIME_LIMIT = 120
# A variable that all processes of a test inherit.
MARK = "TEST_OF_A_PAGE"


@dataclass(frozen=True)
class Outcome:
    """How a command ended, and all that it said."""

    status: int
    said: str


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment after `cmake --install`, as if the prefix were one that the system searches."""
    assert (BUILD / "libfccl.so").exists(), f"{BUILD} has no libfccl.so: run ./dev build first"
    prefix = tmp_path_factory.mktemp("installed")
    installing = ["cmake", "--install", str(BUILD), "--prefix", str(prefix)]
    subprocess.run(installing, check=True, capture_output=True, text=True)
    libraries = next(prefix.rglob("libfccl.so")).parent
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("FCCL_", "OMPI_"))}
    return kept | {
        "PREFIX": str(prefix),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PKG_CONFIG_PATH": str(libraries / "pkgconfig"),
        "CMAKE_PREFIX_PATH": str(prefix),
        "LD_LIBRARY_PATH": str(libraries),
        "CMAKE_GENERATOR": cmake_generator(),
        "OMP_NUM_THREADS": "1",
        # Unless told otherwise, Open MPI refuses root, as which containers run, and more ranks than cores.
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_rmaps_base_oversubscribe": "1",
    }


def cmake_generator() -> str:
    """The build program of the tree, since another may be missing."""
    return re.search(r"^CMAKE_GENERATOR:INTERNAL=(.*)$", (BUILD / "CMakeCache.txt").read_text(), re.M)[1]


@pytest.fixture(scope="session")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that looks like the source folder, where commands may leave files."""
    folder = tmp_path_factory.mktemp("checkout")
    for entry in ROOT.iterdir():
        if entry.name not in {".git", "runs"}:
            (folder / entry.name).symlink_to(entry)
    return folder


@pytest.fixture(scope="session")
def programs_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Gives the folder that holds all programs of a page under the names that they give themselves."""
    folders: dict[str, Path] = {}

    def folder_of(page: str) -> Path:
        if page not in folders:
            folders[page] = tmp_path_factory.mktemp("programs")
            for block in blocks_of(page):
                if block.language in PROGRAMS:
                    (folders[page] / program_of(block).file).write_text(block.text)
        return folders[page]

    return folder_of


@pytest.fixture
def run(environment: dict[str, str], tmp_path: Path) -> Callable[[str, Path], Outcome]:
    """Runs a script of bash in a folder; ends whatever it has left running."""
    said = tmp_path / "said"

    def run_script(script: str, folder: Path) -> Outcome:
        with said.open("w") as output:
            process = subprocess.Popen(
                ["bash", "-euo", "pipefail", "-c", script],
                cwd=folder,
                env=environment | {MARK: str(tmp_path)},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
            try:
                status = process.wait(TIME_LIMIT)
            except subprocess.TimeoutExpired:
                pytest.fail(f"still running after {TIME_LIMIT} s: {script}\n{said.read_text()}")
            finally:
                end_marked(str(tmp_path))
                process.wait()
        return Outcome(status, said.read_text())

    return run_script


def end_marked(value: str) -> None:
    """Ends every process that a test has started, those in sessions of their own too: they carry its mark."""
    mark = f"{MARK}={value}".encode()
    for environ in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if mark in environ.read_bytes().split(b"\0"):
                os.kill(int(environ.parent.name), signal.SIGKILL)
