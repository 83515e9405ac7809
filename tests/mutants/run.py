"""Builds each mutant in a copy of the sources and runs the tests on it until one turns red."""

import argparse
import re
import shutil
import subprocess
import sys
from pathlib import Path

from mutants import MUTANTS, Mutant

ROOT = Path(__file__).resolve().parents[2]
COPIED = [
    *("CMakeLists.txt", "CMakePresets.json"),
    *("cmake", "include", "perf_tests", "plugins", "src", "tests", "tools"),
]
# What the mutants touch: collectives, calls that differ, failures, streams. Random sequences are left out,
# since what they find says little about what is wrong.
SUITES = (
    "^(As/|Of/)?(Attach|PeerMemory|ByteCollectives|Reductions|Sequences|ManyRanks|Streams|Lanes|Mismatch|Skipped|"
    "Leaving|Deadlines|Exit|Death|Split|Counters|SlowPath|Across|PlanExecutor|WirePhase|WireValue|HostMismatch|HostDeath|"
    "HostLeaving)"
)
# Tests of a mutant may wait for something that never comes.
SECONDS_PER_TEST = 60


def command(*words: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
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


def build(source: Path) -> None:
    if not (source / "build" / "build.ninja").exists():
        configured = command("cmake", "--preset", "release", cwd=source)
        if configured.returncode != 0:
            sys.exit(f"could not configure {source}:\n{configured.stdout}")
    built = command("cmake", "--build", "build", cwd=source)
    if built.returncode != 0:
        sys.exit(f"could not build {source}:\n{built.stdout[-4000:]}")


def first_failure(source: Path) -> str | None:
    """The name of a quick test that fails, None if all pass."""
    tested = command(
        *(
            "ctest",
            "--test-dir",
            "build",
            "--label-regex",
            "^quick$",
            "--no-tests=error",
            "--stop-on-failure",
        ),
        *("--tests-regex", SUITES, "--parallel", "2", "--timeout", str(SECONDS_PER_TEST)),
        cwd=source,
    )
    failed = re.search(r"tests FAILED:\n\s*\d+ - (.+?)(?:  # .*)? \(", tested.stdout)
    if failed:
        return failed.group(1)
    if tested.returncode != 0:
        sys.exit(f"the tests could not be run:\n{tested.stdout[-4000:]}")
    return None


def killer_of(mutant: Mutant, source: Path) -> str | None:
    path = source / mutant.path
    text = path.read_text()
    if text.count(mutant.right) != 1:
        times = text.count(mutant.right)
        sys.exit(f"'{mutant.name}': its text occurs {times} times in {mutant.path}; mend mutants.py")
    path.write_text(text.replace(mutant.right, mutant.wrong))
    try:
        build(source)
        return first_failure(source)
    finally:
        path.write_text(text)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--folder", type=Path, default=ROOT / "build" / "mutants", help="where the copy is built"
    )
    parser.add_argument("--only", default="", help="the mutants whose names contain this")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    copy_sources(arguments.folder)
    build(arguments.folder)
    if failed := first_failure(arguments.folder):
        sys.exit(f"a test fails without any mutant: {failed}")
    chosen = [mutant for mutant in MUTANTS if arguments.only in mutant.name]
    survivors = 0
    for mutant in chosen:
        killer = killer_of(mutant, arguments.folder)
        survivors += killer is None
        print(f"{'found by ' + killer if killer else 'NOT FOUND'}: {mutant.name}", flush=True)
    print(f"{len(chosen)} mutants, {survivors} not found")
    return 0 if chosen and survivors == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
