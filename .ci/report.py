"""Counts the tests that ran, by the suites' JUnit files, and holds the numbers against .ci/expected_tests.

The files of one suite count together. A test of CTest that is a program of GoogleTest left a report of its
own in a folder beside the suite's, SUITE/PROGRAM.xml, and counts as the tests in it.
"""

import re
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field
from pathlib import Path

EXPECTED_TESTS = Path(__file__).parent / "expected_tests"
SHOWN_LINES = 40  # lines that are shown of the output of one failed test


@dataclass
class Suite:
    """The tests of one JUnit file that passed, and with a text those that failed or were skipped."""

    name: str
    passed: list[str] = field(default_factory=list)
    failed: list[tuple[str, str]] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)

    @property
    def ran(self) -> int:
        return len(self.passed) + len(self.failed)


def output_of(case: ElementTree.Element) -> str:
    return "\n".join(
        part.text or ""
        for part in case.iter()
        if part.tag in ("failure", "error", "system-out", "system-err")
    )


def skip_reason(case: ElementTree.Element, skipped: ElementTree.Element) -> str:
    # CTest knows only that the output matched; GoogleTest prints the reason below "FILE:LINE: Skipped".
    said = re.search(r": Skipped\n+(.+)", output_of(case))
    return said.group(1).strip() if said else (skipped.get("message") or "").strip() or "no reason given"


def name_of(case: ElementTree.Element) -> str:
    names = list(dict.fromkeys(filter(None, (case.get("classname"), case.get("name")))))
    return "::".join(names)


def has_failed(case: ElementTree.Element) -> bool:
    return case.find("failure") is not None or case.find("error") is not None or case.get("status") == "fail"


def add_case(suite: Suite, case: ElementTree.Element) -> None:
    skipped = case.find("skipped")
    if has_failed(case):
        suite.failed.append((name_of(case), output_of(case)))
    elif skipped is not None or case.get("status") in ("notrun", "disabled"):
        reason = skip_reason(case, skipped) if skipped is not None else "disabled"
        suite.skipped.append((name_of(case), reason))
    else:
        suite.passed.append(name_of(case))


def cases_of(path: Path) -> list[ElementTree.Element] | None:
    """The tests in a report, of which a selector may have left none; None if there is no whole report."""
    try:
        return list(ElementTree.parse(path).iter("testcase"))
    except (OSError, ElementTree.ParseError):
        return None


def read_file(suite: Suite, path: Path) -> None:
    cases = cases_of(path)
    if cases is None:
        why = f"It left no readable report, {path}; its output is in build/log/test-*.log."
        suite.failed.append((suite.name, why))
    for case in cases or []:
        within = cases_of(path.with_suffix("") / f"{case.get('name')}.xml")
        for test in within or []:
            add_case(suite, test)
        # A fault that a program has beside its tests, such as a leak, is a failure of its own.
        if within is None or (has_failed(case) and not any(map(has_failed, within))):
            add_case(suite, case)


def expected_minimum() -> dict[str, int]:
    lines = (line.split("#")[0].split() for line in EXPECTED_TESTS.read_text().splitlines())
    return {words[0]: int(words[1]) for words in lines if words}


def compare(ran: int, minimum: int | None) -> tuple[bool, str]:
    """Tells if too few tests ran, and what to say about the number in .ci/expected_tests."""
    if minimum is None:
        return True, "; .ci/expected_tests has no number for this suite"
    if ran < minimum:
        return True, f"; TOO FEW: .ci/expected_tests says that at least {minimum} run"
    return False, f"; raise the {minimum} in .ci/expected_tests" if ran > minimum * 1.2 else ""


def report(suites: list[Suite], any_number: bool) -> bool:
    """Prints what happened and returns whether all is well."""
    minimum = {} if any_number else expected_minimum()
    for suite in suites:
        for test, text in suite.failed:
            print(f"\nFAILED {suite.name}: {test}")
            print("\n".join("    " + line for line in text.strip().splitlines()[-SHOWN_LINES:]))
    for suite in suites:
        for test, reason in suite.skipped:
            print(f"skipped {suite.name}: {test}: {reason}")
    print()
    well = True
    for suite in suites:
        counts = f"{len(suite.passed)} passed, {len(suite.failed)} failed, {len(suite.skipped)} skipped"
        wrong, note = (False, "") if any_number else compare(suite.ran, minimum.get(suite.name))
        print(f"{suite.name}: {counts}{note}")
        well = well and not wrong
    if any_number and not any(suite.ran for suite in suites):
        print("no test matches the selector")
        well = False
    passed, failed, skipped = (
        sum(len(getattr(suite, kind)) for suite in suites) for kind in ("passed", "failed", "skipped")
    )
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return well and failed == 0


def main(arguments: list[str]) -> int:
    any_number = "--any-number" in arguments
    suites: dict[str, Suite] = {}
    for name, path in (argument.split("=", 1) for argument in arguments if argument != "--any-number"):
        read_file(suites.setdefault(name, Suite(name)), Path(path))
    return 0 if report(list(suites.values()), any_number) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
