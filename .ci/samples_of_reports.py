"""Reports and builds from which tests have vanished, and that .ci/selftest wants to be seen."""

import contextlib
import io
import json
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import expected
import report

ONE_OF_EACH = (
    '<testsuite><testcase name="a" status="run"/>'
    '<testcase name="b" status="fail"><failure message="no"/></testcase>'
    '<testcase name="c" status="notrun"><skipped message="why"/></testcase></testsuite>'
)
ONE_GOOD = '<testsuite><testcase name="a" status="run"/></testsuite>'
NONE = "<testsuite/>"
OF_PROGRAM = '<testsuite><testcase name="sends/2" status="run" classname="By/Rank"/></testsuite>'
OF_PYTEST = (
    '<testsuite><testcase classname="tests.test_a" name="test_one[2]"/>'
    '<testcase classname="" name="tests.test_b"><skipped message="no torch"/></testcase></testsuite>'
)


def demanded(*names: str) -> str:
    return json.dumps(asdict(expected.Expected({name: [name] for name in names})))


def demanded_by_sources(tests: dict[str, str], expression: str = "") -> str:
    with tempfile.TemporaryDirectory() as folder:
        for name, text in tests.items():
            (Path(folder) / name).parent.mkdir(parents=True, exist_ok=True)
            (Path(folder) / name).write_text(text)
        return json.dumps(asdict(expected.of_pytest(Path(folder), ["tests"], expression)))


ONE_AND_TWO = "def test_one(): ...\n\n\ndef test_two(): ...\n"
SLOW_TWO = ONE_AND_TWO.replace("def test_two", "@pytest.mark.slow\ndef test_two")
# The reports of a suite by their names, and what must be said; None where all is well.
REPORTS: list[tuple[str, dict[str, str], str | None]] = [
    ("a failure", {"0.xml": ONE_OF_EACH, "0.expected": demanded("a", "b")}, "1 passed, 1 failed, 1 skipped"),
    ("success", {"0.xml": ONE_GOOD, "0.expected": demanded("a")}, None),
    (
        "two files",
        {"0.xml": ONE_GOOD, "0.expected": demanded("a"), "1.xml": ONE_GOOD, "1.expected": demanded("a")},
        None,
    ),
    ("a suite cut short", {"0.xml": ONE_GOOD, "0.expected": demanded("a", "b")}, "b left no result"),
    ("a lost file", {"0.xml": "", "0.expected": demanded()}, "0 passed, 1 failed"),
    ("no file", {"0.expected": demanded()}, "left no readable report"),
    ("nothing derived", {"0.xml": ONE_GOOD}, "does not say what must have run"),
    ("a suite that chose nothing", {"0.xml": NONE, "0.expected": demanded()}, "none of its tests ran"),
    (
        "a fault of the sources",
        {"0.xml": ONE_GOOD, "0.expected": json.dumps(asdict(expected.Expected(faults=["a_test.cpp: lost"])))},
        "VANISHED sample: a_test.cpp: lost",
    ),
    (
        "a program whose filter chose one test",
        {
            "0.xml": ONE_GOOD,
            "0/a.xml": OF_PROGRAM,
            "0.expected": demanded("a", "a:Rank.sends", "a:Rank.waits"),
        },
        "a:Rank.waits left no result",
    ),
    (
        "a program",
        {"0.xml": ONE_GOOD, "0/a.xml": OF_PROGRAM, "0.expected": demanded("a", "a:Rank.sends")},
        None,
    ),
    (
        "a program without a report",
        {"0.xml": ONE_GOOD, "0.expected": demanded("a", "a:Rank.sends")},
        "a:Rank.sends left no result",
    ),
    (
        "a module that is skipped",
        {
            "0.xml": OF_PYTEST,
            "0.expected": demanded_by_sources(
                {"tests/test_a.py": "def test_one(): ...\n", "tests/test_b.py": ONE_AND_TWO}
            ),
        },
        None,
    ),
    (
        "a module that was not collected",
        {"0.xml": OF_PYTEST, "0.expected": demanded_by_sources({"tests/test_c.py": ONE_AND_TWO})},
        "tests.test_c::test_two left no result",
    ),
    (
        "one function that was not collected",
        {"0.xml": OF_PYTEST, "0.expected": demanded_by_sources({"tests/test_a.py": ONE_AND_TWO})},
        "tests.test_a::test_two left no result",
    ),
    (
        "a function that its mark leaves out",
        {"0.xml": OF_PYTEST, "0.expected": demanded_by_sources({"tests/test_a.py": SLOW_TWO}, "not slow")},
        None,
    ),
    (
        "a function that its mark chooses",
        {"0.xml": OF_PYTEST, "0.expected": demanded_by_sources({"tests/test_a.py": SLOW_TWO}, "slow")},
        "tests.test_a::test_two left no result",
    ),
    (
        "a module that its mark leaves out",
        {
            "0.xml": OF_PYTEST,
            "0.expected": demanded_by_sources(
                {"tests/test_c.py": "pytestmark = [pytest.mark.slow, x]\n" + ONE_AND_TWO}, "not slow"
            ),
        },
        None,
    ),
    (
        "a class of which no test ran",
        {
            "0.xml": OF_PYTEST,
            "0.expected": demanded_by_sources(
                {"tests/test_a.py": "class TestIt:\n  def test_one(self): ...\n"}
            ),
        },
        "tests.test_a::TestIt left no result",
    ),
    (
        "a folder without tests",
        {"0.xml": OF_PYTEST, "0.expected": demanded_by_sources({"tests/ranks.py": ONE_AND_TWO})},
        "tests has no test_*.py",
    ),
    (
        "a module without tests",
        {"0.xml": OF_PYTEST, "0.expected": demanded_by_sources({"tests/test_d.py": "x = 1\n"})},
        "tests/test_d.py has no test",
    ),
]


def report_outcome(files: dict[str, str], says: str | None) -> str | None:
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()) as said:
        for name, text in files.items():
            (Path(folder) / name).parent.mkdir(exist_ok=True)
            (Path(folder) / name).write_text(text)
        names = sorted({Path(name).stem for name in files if "/" not in name})
        status = report.main([f"sample={folder}/{name}.xml" for name in names])
    if says is None:
        return None if status == 0 else f"found what is not wrong: {said.getvalue()}"
    return None if status and says in said.getvalue() else f"should say '{says}', but said {said.getvalue()}"


A_TEST = "TEST(Rank, sends) {}\nTEST_P(Rank, waits) {}\n"
SENDS = {"name": "Rank.sends", "command": ["/build/a_test", "--gtest_filter=Rank.sends"]}
WAITS = {"name": "By/Rank.waits/0", "command": ["/build/a_test", "--gtest_filter=By/Rank.waits/0"]}
WHOLE = {
    "name": "a_test",
    "command": ["/build/a_test"],
    "properties": [{"name": "LABELS", "value": ["quick", "program"]}],
}
FIRST = [SENDS]
BOTH = [SENDS, WAITS]
A_PROGRAM = {"a_test": ["tests/a_test.cpp"]}
# The build, the text of tests/a_test.cpp, the targets of the suite, and the fault; None where all is well.
BUILDS: list[tuple[str, expected.Build, str, list[str], str | None]] = [
    ("a program of CTest", expected.Build(A_PROGRAM, {}, BOTH, BOTH), A_TEST, [], None),
    (
        "a source of no program",
        expected.Build({}, {}, BOTH, BOTH),
        A_TEST,
        [],
        "no program of this build has it",
    ),
    ("a source left out", expected.Build({}, {"tests/a_test.cpp": "why"}, [], []), A_TEST, [], None),
    ("a folder left out", expected.Build({}, {"tests": "why"}, [], []), A_TEST, [], None),
    (
        "a program that is not built",
        expected.Build(A_PROGRAM, {}, [], []),
        A_TEST,
        [],
        "CTest knows no test of",
    ),
    (
        "a test that no filter finds",
        expected.Build(A_PROGRAM, {}, FIRST, FIRST),
        A_TEST,
        [],
        "CTest does not know Rank.waits",
    ),
    (
        "a test of other builds",
        expected.Build(A_PROGRAM, {}, FIRST, FIRST),
        A_TEST.replace("TEST_P", "#ifdef OTHER\nTEST_P") + "#endif\n",
        [],
        None,
    ),
    (
        "a source of which all is for other builds",
        expected.Build(A_PROGRAM, {}, [SENDS], []),
        "#ifdef OTHER\nTEST(Rank, takes) {}\n#endif\n",
        [],
        "CTest does not know any of its tests",
    ),
    (
        "a test that is switched off",
        expected.Build(A_PROGRAM, {}, FIRST, FIRST),
        A_TEST.replace("TEST_P", "#if 0\nTEST_P") + "#endif\n",
        [],
        "CTest does not know Rank.waits",
    ),
    (
        "a suite of programs that runs none",
        expected.Build(A_PROGRAM, {}, BOTH, []),
        A_TEST,
        ["a_test"],
        "the suite runs no test of a_test",
    ),
    (
        "a suite of programs that leaves out a source",
        expected.Build({"a_test": ["tests/a_test.cpp", "tests/b_test.cpp"]}, {}, BOTH, FIRST),
        A_TEST.replace("sends", "takes"),
        ["a_test"],
        "tests/a_test.cpp: the suite runs no test of it",
    ),
    ("a program that is one test", expected.Build(A_PROGRAM, {}, [WHOLE], [WHOLE]), A_TEST, [], None),
]


def build_outcome(build: expected.Build, text: str, targets: list[str], says: str | None) -> str | None:
    found = expected.of_ctest({"tests/a_test.cpp": expected.sites_of(text)}, build, targets).faults
    if says is None:
        return f"found {found}, where nothing is wrong" if found else None
    return None if any(says in fault for fault in found) else f"should say '{says}', but said {found}"


def demands_outcome() -> str | None:
    """A program that is one test must leave a result of each TEST, unless the suite leaves it out."""
    sources = {"tests/a_test.cpp": expected.sites_of(A_TEST)}
    chosen, left = (
        expected.of_ctest(sources, expected.Build(A_PROGRAM, {}, [WHOLE], runs), []).demands
        for runs in ([WHOLE], [])
    )
    fine = set(chosen) == {"a_test", "a_test:Rank.sends", "a_test:Rank.waits"} and not left
    return None if fine else f"demanded {chosen} of a program that runs, {left} of one that does not"


def outcomes() -> Iterator[tuple[str, str | None]]:
    """Each sample, and what is wrong with how it was judged, if anything."""
    for what, files, says in REPORTS:
        yield f"report of {what}", report_outcome(files, says)
    for what, build, text, targets, says in BUILDS:
        yield f"build with {what}", build_outcome(build, text, targets, says)
    yield "demands of a program", demands_outcome()
