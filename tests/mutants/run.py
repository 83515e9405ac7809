"""Builds each mutant in a copy of the sources and runs tests, the nearest first, until one turns red."""

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from mutants import MUTANTS, Mutant

ROOT = Path(__file__).resolve().parents[2]
COPIED = [
    *("CMakeLists.txt", "CMakePresets.json"),
    *("cmake", "docs", "examples", "include", "perf_tests", "plugins", "src", "tests", "tools"),
    "torch_backend",
]
# The test programs that stand nearest to each room which mutants are in.
NEAREST = {
    "base": ["base_test", "failures_test"],
    "c_api": ["c_api_test", "processes_test"],
    "health": ["health_test", "failures_test", "processes_test"],
    "operations": ["failures_test", "processes_test"],
    "hierarchical": ["wire_phases_test", "hosts_test"],
    "host": ["host_test", "collectives_test", "streams_test"],
    "segment": ["segment_test", "host_test", "collectives_test"],
}
# Programs that are tried next, with the nearest of other rooms. Random sequences of many seeds, or against
# MPI, are left out, since what they find says little about what is wrong.
OTHERS = ["membership_test", "scale_test"]
PROGRAMS = list(dict.fromkeys([*(each for nearest in NEAREST.values() for each in nearest), *OTHERS]))
AT_ONCE = 2


@dataclass(frozen=True)
class Test:
    """A test of CTest: one of GoogleTest in a process of its own, or a program of many."""

    name: str
    program: Path  # below the sources
    arguments: list[str]
    is_program: bool
    limit: float  # seconds: a test of a mutant may wait for something that never comes


def command(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, cwd=cwd, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def copy_if_changed(source: str, target: str) -> None:
    """Leaves the time of a file alone that need not be built again."""
    if not Path(target).exists() or Path(source).read_bytes() != Path(target).read_bytes():
        shutil.copyfile(source, target)
        shutil.copymode(source, target)


def copy_sources(target: Path) -> None:
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, target / name, dirs_exist_ok=True, copy_function=copy_if_changed)
        else:
            copy_if_changed(str(ROOT / name), str(target / name))


def build(source: Path, programs: list[str]) -> None:
    if not (source / "build" / "build.ninja").exists():
        configured = command("cmake", "--preset", "release", cwd=source)
        if configured.returncode != 0:
            sys.exit(f"could not configure {source}:\n{configured.stdout}")
    built = command("cmake", "--build", "build", "--target", *programs, cwd=source)
    if built.returncode != 0:
        sys.exit(f"could not build {source}:\n{built.stdout[-4000:]}")


def quick_tests() -> dict[str, list[Test]]:
    """The quick tests of each program, as they are without a mutant."""
    build(ROOT, PROGRAMS)
    listed = command(
        "ctest", "--test-dir", "build", "--label-regex", "^quick$", "--show-only=json-v1", cwd=ROOT
    )
    tests: dict[str, list[Test]] = {program: [] for program in PROGRAMS}
    for each in json.loads(listed.stdout[listed.stdout.index("{") :])["tests"]:
        program, *arguments = each.get("command", [""])
        properties = {have["name"]: have["value"] for have in each["properties"]}
        if Path(program).name in tests:
            place = Path(program).relative_to(ROOT)
            is_program = "program" in properties["LABELS"]
            tests[place.name].append(Test(each["name"], place, arguments, is_program, properties["TIMEOUT"]))
    if missing := [program for program, of_program in tests.items() if not of_program]:
        sys.exit(f"CTest knows no quick test of {', '.join(missing)}; mend NEAREST or OTHERS")
    return tests


def failure_of(test: Test, source: Path, *arguments: str) -> str | None:
    """The name of the test that failed, crashed or did not end, None if all is well."""
    status = None
    with tempfile.TemporaryFile("w+", errors="replace") as said:
        process = subprocess.Popen(
            [source / test.program, *test.arguments, *arguments],
            env=os.environ | {"GTEST_FAIL_FAST": "1"},
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            status = process.wait(test.limit)
        except subprocess.TimeoutExpired:
            pass
        finally:  # ranks that a failed test leaves behind, too
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if status == 0:
            return None
        said.seek(0)
        text = said.read()
    failed = re.search(r"^\[  FAILED  \] ([^\s,]+)", text, re.MULTILINE)
    begun = re.findall(r"^\[ RUN      \] (\S+)", text, re.MULTILINE)
    return failed.group(1) if failed else begun[-1] if begun else test.name


def only(test: Test, name: str) -> list[str]:
    return [f"--gtest_filter={name}"] if test.is_program else []


def first_failure(tests: list[Test], source: Path) -> tuple[Test, str] | None:
    """The test that turned red twice, and its name within its program."""
    red = threading.Event()

    def run(test: Test) -> tuple[Test, str] | None:
        if red.is_set() or not (name := failure_of(test, source)):
            return None
        # A busy machine may have failed it.
        if not failure_of(test, source, *only(test, name)):
            return None
        red.set()
        return test, name

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return next(filter(None, pool.map(run, tests)), None)


@contextmanager
def mutated(mutant: Mutant, source: Path) -> Iterator[None]:
    path = source / mutant.path
    text = path.read_text()
    if text.count(mutant.right) != 1:
        times = text.count(mutant.right)
        sys.exit(f"'{mutant.name}': its text occurs {times} times in {mutant.path}; mend mutants.py")
    path.write_text(text.replace(mutant.right, mutant.wrong))
    try:
        yield
    finally:
        path.write_text(text)


def failure_in(
    source: Path, tests: dict[str, list[Test]], programs: list[str], name_part: str
) -> tuple[Test, str] | None:
    """The first failure of these programs' tests whose names contain `name_part`."""
    build(source, programs)
    chosen = [test for program in programs for test in tests[program] if name_part in test.name]
    return first_failure(chosen, source)


def killer_of(mutant: Mutant, source: Path, tests: dict[str, list[Test]]) -> str | None:
    """The name of a test that fails with the mutant and passes without it."""
    nearest = NEAREST.get(Path(mutant.path).parts[1], [])
    others = [program for program in PROGRAMS if program not in nearest]
    # Most mutants die of the first program, and then the others need not be built.
    rounds = [*(([program], "") for program in nearest), (others, "")]
    if mutant.suspect:
        suspects = [each for each in PROGRAMS if any(mutant.suspect in test.name for test in tests[each])]
        rounds.insert(0, (suspects, mutant.suspect))
    with mutated(mutant, source):
        found = next(filter(None, (failure_in(source, tests, *round) for round in rounds)), None)
    if not found:
        return None
    test, name = found
    if failure_of(test, ROOT, *only(test, name)):
        sys.exit(f"{name} fails without any mutant, too")
    return name


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--folder", type=Path, default=ROOT / "build" / "mutants", help="where the copy is built"
    )
    parser.add_argument("--only", default="", help="the mutants whose names contain this")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    copy_sources(arguments.folder)
    tests = quick_tests()
    chosen = [mutant for mutant in MUTANTS if arguments.only in mutant.name]
    survivors = 0
    for mutant in chosen:
        killer = killer_of(mutant, arguments.folder, tests)
        survivors += killer is None
        print(f"{'found by ' + killer if killer else 'NOT FOUND'}: {mutant.name}", flush=True)
    print(f"{len(chosen)} mutants, {survivors} not found")
    return 0 if chosen and survivors == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
