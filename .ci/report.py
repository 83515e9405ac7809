"""Counts the tests that ran, by the suites' JUnit files, and finds those that .ci/expected.py demands.

The files of one suite count together. A test of CTest that is a program of GoogleTest left a report of its
own in a folder beside the suite's, SUITE/PROGRAM.xml, and counts as the tests in it. Beside each report
NAME.xml lies NAME.expected: what must have left a result there, be it a reason to skip.
"""

import json
import re
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field
from pathlib import Path

SHOWN_ABSENT = 20  # tests of one suite that are named, if they left no result
SHOWN_LINES = 40  # lines that are shown of the output of one failed test


@dataclass
class Suite:
    """The tests of one suite by how they ended, with a text unless they passed, and what has vanished."""

    name: str
    passed: list[str] = field(default_factory=list)
    failed: list[tuple[str, str]] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)
    vanished: list[str] = field(default_factory=list)

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


def keys_of(case: ElementTree.Element, program: str | None = None) -> set[str]:
    """A result as demands name it: PROGRAM:SUITE.TEST, MODULE::TEST, MODULE::CLASS, or a test of CTest.

    A module that was skipped as a whole leaves one result of its own name.
    """
    group, name = case.get("classname") or "", case.get("name") or ""
    if program:  # Prefix/Suite or Suite/0, and name/parameter
        return {f"{program}:{part}.{name.split('/')[0]}" for part in group.split("/")}
    module, _, last = group.rpartition(".")
    return {name, f"{group}::{name.split('[')[0]}", f"{module}::{last}"}


def read_file(suite: Suite, path: Path) -> set[str]:
    """Counts the tests of a report and returns their keys."""
    cases = cases_of(path)
    if cases is None:
        why = f"It left no readable report, {path}; its output is in build/log/test-*.log."
        suite.failed.append((suite.name, why))
    keys = set()
    for case in cases or []:
        keys |= keys_of(case)
        within = cases_of(path.with_suffix("") / f"{case.get('name')}.xml")
        for test in within or []:
            keys |= keys_of(test, case.get("name"))
            add_case(suite, test)
        # A fault that a program has beside its tests, such as a leak, is a failure of its own.
        if within is None or (has_failed(case) and not any(map(has_failed, within))):
            add_case(suite, case)
    return keys


def compare(suite: Suite, path: Path, keys: set[str]) -> None:
    """Notes which tests have vanished from a report."""
    try:
        expected = json.loads(path.with_suffix(".expected").read_text())
    except (OSError, ValueError):
        suite.vanished.append(f"{path.with_suffix('.expected')} does not say what must have run")
        return
    suite.skipped += expected["left_out"].items()
    suite.vanished += expected["faults"]
    suite.vanished += [
        f"{what} left no result" for what, enough in expected["demands"].items() if keys.isdisjoint(enough)
    ]


def report(suites: list[Suite], any_number: bool) -> bool:
    """Prints what happened and returns whether all is well."""
    for suite in suites:
        for test, text in suite.failed:
            print(f"\nFAILED {suite.name}: {test}")
            print("\n".join("    " + line for line in text.strip().splitlines()[-SHOWN_LINES:]))
    for suite in suites:
        for test, reason in suite.skipped:
            print(f"skipped {suite.name}: {test}: {reason}")
    print_vanished(suites)
    print()
    for suite in suites:
        counts = f"{len(suite.passed)} passed, {len(suite.failed)} failed, {len(suite.skipped)} skipped"
        print(f"{suite.name}: {counts}" + (f"; {len(suite.vanished)} VANISHED" if suite.vanished else ""))
    if any_number and not any(suite.ran for suite in suites):
        print("no test matches the selector")
    passed, failed, skipped = (
        sum(len(getattr(suite, kind)) for suite in suites) for kind in ("passed", "failed", "skipped")
    )
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return failed == 0 and passed > 0 and not any(suite.vanished for suite in suites)


def print_vanished(suites: list[Suite]) -> None:
    for suite in suites:
        for what in suite.vanished[:SHOWN_ABSENT]:
            print(f"VANISHED {suite.name}: {what}")
        if len(suite.vanished) > SHOWN_ABSENT:
            print(f"VANISHED {suite.name}: {len(suite.vanished) - SHOWN_ABSENT} more")


def main(arguments: list[str]) -> int:
    any_number = "--any-number" in arguments
    suites: dict[str, Suite] = {}
    for name, path in (argument.split("=", 1) for argument in arguments if argument != "--any-number"):
        suite = suites.setdefault(name, Suite(name))
        keys = read_file(suite, Path(path))
        if not any_number:
            compare(suite, Path(path), keys)
    for suite in suites.values():
        if not any_number and not suite.ran:
            suite.vanished.append("none of its tests ran")
    return 0 if report(list(suites.values()), any_number) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
