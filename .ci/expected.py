"""Derives from the sources what a suite must leave results of; .ci/report.py holds its reports against that.

    expected.py ctest FILE FOLDER "TARGET..." CTEST-ARGUMENT...      # "" stands for every target
    expected.py pytest FILE FOLDER... -- PYTEST-ARGUMENT...

FILE becomes a JSON object:
    demands: for each test or source that must leave a result, the keys (see report.py) of which one is enough
    left_out: tests that this build leaves out, with the reason that CMake gave
    faults: what shows already that tests have vanished
"""

import ast
import json
import os
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SITE = re.compile(r"\s*(?:TYPED_)?TEST(?:_[FP])?\(\s*(\w+)\s*,\s*(\w+)\s*\)")
CONDITION = re.compile(r"\s*#\s*(if|ifdef|ifndef|endif)\b\s*(.*)")
# These conditions let no test off: Highway compiles what stands in the first once, and nobody the second.
NO_EXCUSES = ("HWY_ONCE", "0")
# CTest runs By/Suite.name/0 and Suite/0.name of a program by a filter.
FILTERED = re.compile(r"([\w/]+)\.(\w+)")


@dataclass
class Expected:
    """What one report must hold, and what is known already."""

    demands: dict[str, list[str]] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Site:
    """One TEST in a source; a conditional one is compiled in some builds only."""

    suite: str
    name: str
    conditional: bool

    @property
    def pair(self) -> str:
        return f"{self.suite}.{self.name}"


def sites_of(source: str) -> list[Site]:
    found, conditions = [], []
    for line in source.splitlines():
        if condition := CONDITION.match(line):
            if condition[1] == "endif":
                conditions.pop()
            else:
                conditions.append(condition[2].strip() not in NO_EXCUSES)
        elif site := SITE.match(line):
            found.append(Site(site[1], site[2], any(conditions)))
    return found


def test_sources(root: Path) -> dict[str, list[Site]]:
    """The sources with tests, wherever they lie: a folder that no CMakeLists.txt names has some, too."""
    found = {}
    for folder, folders, files in os.walk(root):
        folders[:] = [each for each in folders if not each.startswith((".", "build"))]
        for path in (Path(folder) / each for each in files if each.endswith((".cpp", ".cu"))):
            if sites := sites_of(path.read_text(errors="replace")):
                found[str(path.relative_to(root))] = sites
    return found


@dataclass
class Build:
    """What CMake and CTest know of a configured build."""

    programs: dict[str, list[str]]  # the sources of each program of tests
    left_out: dict[str, str]  # a source or a folder, and the reason
    tests: list[dict]  # all tests of CTest
    chosen: list[dict]  # those that the suite runs


def table_of(path: Path) -> list[list[str]]:
    return [line.split("\t", 1) for line in path.read_text().splitlines()]


def tests_of(folder: Path, arguments: list[str]) -> list[dict]:
    command = ["ctest", "--test-dir", str(folder), "--show-only=json-v1", *arguments]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["tests"]


def read_build(folder: Path, arguments: list[str]) -> Build:
    programs = defaultdict(list)
    for program, source in table_of(folder / "test_sources.txt"):
        programs[program].append(source)
    left_out = dict(table_of(folder / "tests_left_out.txt"))
    return Build(dict(programs), left_out, tests_of(folder, []), tests_of(folder, arguments))


def labels_of(test: dict) -> list[str]:
    return next((each["value"] for each in test.get("properties", []) if each["name"] == "LABELS"), [])


def pairs_of(tests: Iterable[dict], program: str) -> set[str]:
    """The sites of a program that these tests run by filters."""
    filters = [
        word
        for test in tests
        if program in map(base_name, test.get("command", []))
        for word in test["command"]
        if word.startswith("--gtest_filter=")
    ]
    return {
        f"{part}.{name}"
        for word in filters
        for group, name in FILTERED.findall(word)
        for part in group.split("/")
    }


def base_name(word: str) -> str:
    return word.rpartition("/")[2]


def of_ctest(sources: dict[str, list[Site]], build: Build, targets: list[str]) -> Expected:
    expected = Expected({test["name"]: [test["name"]] for test in build.chosen})
    programs = {name: build.programs.get(name, []) for name in targets or build.programs}
    for program, compiled in programs.items():
        tested = {source: sources[source] for source in compiled if source in sources}
        whole = [test for test in build.tests if test["name"] == program and "program" in labels_of(test)]
        if whole:
            if program in expected.demands:
                demand_sites(expected, program, tested)
        elif tested:
            find_sites(expected, program, tested, pairs_of(build.tests, program))
        if targets:
            find_choice(expected, program, tested, build.chosen)
    if not targets:
        account_for(expected, sources, build)
    return expected


def demand_sites(expected: Expected, program: str, tested: dict[str, list[Site]]) -> None:
    """A program that is one test of CTest leaves a report of its own."""
    for source, sites in tested.items():
        keys = {f"{program}:{site.pair}": site for site in sites}
        sure = {key: [key] for key, site in keys.items() if not site.conditional}
        expected.demands |= sure or {f"{program}: {source}": list(keys)}


def find_sites(expected: Expected, program: str, tested: dict[str, list[Site]], known: set[str]) -> None:
    """CTest knows each test of any other program, or the program is not built or not discovered whole."""
    if not known:
        expected.faults.append(f"CTest knows no test of the program {program}")
        return
    for source, sites in tested.items():
        sure = [site.pair for site in sites if not site.conditional]
        absent = [pair for pair in sure if pair not in known]
        if not sure and known.isdisjoint(site.pair for site in sites):
            absent = ["any of its tests"]
        expected.faults += [
            f"{source}: CTest does not know {pair} of the program {program}" for pair in absent
        ]


def find_choice(expected: Expected, program: str, tested: dict[str, list[Site]], chosen: list[dict]) -> None:
    """A suite that names its programs wants something of each, whatever its regular expression says."""
    of_program = [test for test in chosen if program in map(base_name, test.get("command", []))]
    if not of_program:
        expected.faults.append(f"the suite runs no test of {program}")
    elif not any(program in labels_of(test) for test in of_program):
        pairs = pairs_of(chosen, program)
        expected.faults += [
            f"{source}: the suite runs no test of it"
            for source, sites in tested.items()
            if pairs.isdisjoint(site.pair for site in sites)
        ]


def account_for(expected: Expected, sources: dict[str, list[Site]], build: Build) -> None:
    expected.left_out = build.left_out
    compiled = {source for each in build.programs.values() for source in each}
    expected.faults += [
        f"{source}: no program of this build has it, and no fccl_leave_out says why"
        for source in sorted(sources.keys() - compiled)
        if build.left_out.keys().isdisjoint(map(str, (source, *Path(source).parents)))
    ]


class Marks(dict):
    """The names of an expression of marks: those that a test has are true."""

    def __missing__(self, name: str) -> bool:
        return False


def selects(expression: str, marks: Iterable[str]) -> bool:
    return not expression or eval(expression, {"__builtins__": {}}, Marks(dict.fromkeys(marks, True)))


def marks_in(expressions: Iterable[ast.expr]) -> Iterator[str]:
    """The names of pytest.mark.NAME and pytest.mark.NAME(...); other names select nothing."""
    for each in expressions:
        if isinstance(each, ast.List | ast.Tuple):
            yield from marks_in(each.elts)
        called = each.func if isinstance(each, ast.Call) else each
        if isinstance(called, ast.Attribute) and ast.unparse(called.value) == "pytest.mark":
            yield called.attr


def tests_in(tree: ast.Module) -> Iterator[tuple[str, set[str]]]:
    """The test functions and classes of a module with their marks; a class may make up its tests."""
    common = [
        each.value
        for each in tree.body
        if isinstance(each, ast.Assign) and [ast.unparse(target) for target in each.targets] == ["pytestmark"]
    ]
    for each in tree.body:
        function = isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) and each.name.startswith("test")
        if function or (isinstance(each, ast.ClassDef) and each.name.startswith("Test")):
            yield each.name, set(marks_in([*common, *each.decorator_list]))


def of_pytest(root: Path, folders: list[str], expression: str) -> Expected:
    """A test must leave a result if its own marks are selected; those of its parameters are not looked at."""
    expected = Expected()
    for folder in folders:
        files = sorted((root / folder).rglob("test_*.py"))
        if not files:
            expected.faults.append(f"{folder} has no test_*.py")
        for path in files:
            module = ".".join(path.relative_to(root).with_suffix("").parts)
            tests = list(tests_in(ast.parse(path.read_text())))
            if not tests:
                expected.faults.append(f"{path.relative_to(root)} has no test")
            for name, marks in tests:
                if selects(expression, marks):
                    expected.demands[f"{module}::{name}"] = [f"{module}::{name}", module]
    return expected


def main(arguments: list[str]) -> int:
    kind, file, *rest = arguments
    if kind == "ctest":
        folder, targets, *of_suite = rest
        build = read_build(ROOT / folder, of_suite)
        expected = of_ctest(test_sources(ROOT), build, targets.split())
    else:
        end = rest.index("--")
        options = rest[end:]
        expression = options[options.index("-m") + 1] if "-m" in options else ""
        expected = of_pytest(ROOT, rest[:end], expression)
    Path(file).write_text(json.dumps(asdict(expected)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
