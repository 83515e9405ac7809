"""How the tests start clusters, and what they may leave behind: nothing."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = [sys.executable, str(ROOT / "tools/cluster/cluster.py")]
TIME_LIMIT = 60
# A variable that all processes of a test inherit.
MARK = "TEST_OF_A_CLUSTER"


def permitted() -> str:
    """Why no cluster can be made here; "" where one can."""
    trial = ["unshare", "--net", "--pid", "--ipc", "--uts", "--mount", "--fork", "true"]
    try:
        return subprocess.run(trial, capture_output=True, text=True).stderr.strip()
    except OSError as error:
        return str(error)


@pytest.fixture(scope="session", autouse=True)
def namespaces_are_permitted() -> None:
    if why := permitted():
        pytest.skip(f"namespaces cannot be made here: {why}")


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("FCCL_", "OMPI_"))}
    return kept | {MARK: str(tmp_path)}


@pytest.fixture
def begin(environment: dict[str, str], tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen]]:
    """Starts the program with these words; ends it after the test if the test has not."""
    begun = []

    def begin_with(*words: str, program: list[str] = PROGRAM) -> subprocess.Popen:
        command = [*program, *words]
        process = subprocess.Popen(
            command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        begun.append(process)
        return process

    yield begin_with
    for process in begun:
        process.kill()
        process.communicate()


@pytest.fixture
def run(begin: Callable[..., subprocess.Popen]) -> Callable[..., subprocess.CompletedProcess]:
    """Runs the program with these words to its end."""

    def run_to_end(
        *words: str, program: list[str] = PROGRAM, limit: float = TIME_LIMIT
    ) -> subprocess.CompletedProcess:
        process = begin(*words, program=program)
        said, complained = process.communicate(timeout=limit)
        return subprocess.CompletedProcess(words, process.returncode, said, complained)

    return run_to_end


@pytest.fixture(autouse=True)
def nothing_is_left_behind(tmp_path: Path) -> Iterator[None]:
    links = interfaces()
    yield
    assert left_of(tmp_path) == []
    assert interfaces() == links


def interfaces() -> list[str]:
    """The links of the machine's own network."""
    return sorted(os.listdir("/sys/class/net"))


def left_of(tmp_path: Path, patience: float = 5.0) -> list[str]:
    """Processes of a test that still run after a while; their namespaces live as long as they."""
    mark = f"{MARK}={tmp_path}".encode()
    deadline = time.monotonic() + patience
    while (
        left := [each for each in processes() if mark in environ_of(each)]
    ) and time.monotonic() < deadline:
        time.sleep(0.05)
    return [f"{each.name} {program_of(each)}" for each in left]


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def processes() -> list[Path]:
    return [each for each in Path("/proc").iterdir() if each.name.isdigit()]


def environ_of(process: Path) -> list[bytes]:
    try:
        return (process / "environ").read_bytes().split(b"\0")
    except OSError:
        return []


def program_of(process: Path) -> str:
    try:
        return (process / "comm").read_text().strip()
    except OSError:
        return "(has ended since)"


def listening_names() -> set[str]:
    """The names of the clusters that run."""
    return set(re.findall(r"@(fccl-cluster-\d+)$", Path("/proc/net/unix").read_text(), re.M))
