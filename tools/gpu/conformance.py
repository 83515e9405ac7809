"""The step that asks the GPU for all that the library takes for granted of one."""

import json
import subprocess
import time
from collections.abc import Generator, Iterator

from measured import row
from programs import Programs, Ranks, started

ALONE = Ranks(1, "threads")
CASE = "the contract of a device"
# Tests of operations that a GPU may accept though the library never asks for them. The GPU may then be lost
# to the process that did.
STRANGE = "*strange_*"
LISTED_SECONDS = 60


def rows(programs: Programs, seconds: float) -> Iterator[dict]:
    """A row for each test that failed or was skipped, and one for the rest."""
    end = time.monotonic() + seconds
    tests = yield from tests_of(programs, f"-{STRANGE}", seconds * 0.7)
    for name in strange_tests(programs):
        tests += yield from tests_of(programs, name, min(20, end - time.monotonic()))
    if tests:
        yield from rows_of(tests)


def strange_tests(programs: Programs) -> list[str]:
    """Each runs in a process of its own."""
    words = [programs.conformance, "--gtest_list_tests", f"--gtest_filter={STRANGE}"]
    try:
        listed = subprocess.run(words, capture_output=True, text=True, timeout=LISTED_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return [f"*.{line.split()[0]}" for line in listed.stdout.splitlines() if line.startswith("  ")]


def tests_of(programs: Programs, chosen: str, seconds: float) -> Generator[dict, None, list[dict]]:
    """Gives what the tests of this filter came to; a row, and nothing, where they did not end well."""
    words = [programs.conformance, f"--gtest_filter={chosen}", "--gtest_output=json:FOLDER/tests.json"]
    try:
        with started(words) as run:
            run.wait(seconds)
            (process,) = run.processes
            report = json.loads((run.folder / "tests.json").read_text())
            return [test for suite in report["testsuites"] for test in suite["testsuite"]]
    except OSError as error:
        yield row("conformance", "failed", f"{chosen}: {error}", ALONE, case=CASE)
    except ValueError:
        ended = "killed" if process.status is None else f"status {process.status}"
        yield row("conformance", "failed", f"{chosen}: {ended}: {process.last_words}", ALONE, case=CASE)
    return []


def rows_of(tests: list[dict]) -> Iterator[dict]:
    """A row for each test that did not pass, and one that counts those that did."""
    tests = [test for test in tests if test.get("status") != "NOTRUN"]
    passed = 0
    for test in tests:
        failures = test.get("failures", [])
        if failures:
            note = " ".join(failures[0]["failure"].split())[:300]
            yield row(test["name"], "failed", note, ALONE, case=CASE)
        elif test.get("result") == "SKIPPED":
            yield row(test["name"], "unsupported", "skipped", ALONE, case=CASE)
        else:
            passed += 1
    verdict = "works" if passed else "failed"
    yield row("what every device must do", verdict, f"{passed} of {len(tests)} tests", ALONE, case=CASE)
