"""The step that asks the GPU for all that the library takes for granted of one."""

import json
from collections.abc import Iterator

from measured import row
from programs import Programs, Ranks, started

ALONE = Ranks(1, "threads")
CASE = "the contract of a device"


def rows(programs: Programs, seconds: float) -> Iterator[dict]:
    """A row for each test that failed or was skipped, and one for the rest."""
    words = [programs.conformance, "--gtest_output=json:FOLDER/tests.json"]
    try:
        with started(words) as run:
            run.wait(seconds)
            (process,) = run.processes
            report = json.loads((run.folder / "tests.json").read_text())
    except OSError as error:
        yield row("conformance", "failed", str(error), ALONE, case=CASE)
        return
    except ValueError:
        ended = "killed" if process.status is None else f"status {process.status}"
        yield row("conformance", "failed", f"{ended}: {process.last_words}", ALONE, case=CASE)
        return
    tests = [test for suite in report["testsuites"] for test in suite["testsuite"]]
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
