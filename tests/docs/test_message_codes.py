"""Checks that each code of a message is used, is explained, and means what it has always meant."""

import re

import pytest
from pages import ROOT

# Number and name of each code that there ever was: a line may be added, and none may change or go.
KEPT = ROOT / "tests/docs/message_codes.txt"
PAGE = (ROOT / "docs/reference/errors.md").read_text()
HEADER = (ROOT / "include/fccl/fccl.h").read_text()
RESULTS = {
    int(number): name
    for name, number in re.findall(r"^  (fccl\w+) = (\d+),", HEADER.split("} fcclResult_t;")[0], re.M)
}


def kinds() -> dict[str, str]:
    header = (ROOT / "src/base/message_kind.h").read_text()
    listed = re.search(r"enum class MessageKind : uint16_t \{(.*?)\};", header, re.S)
    return {f"FCCL-{int(number):04}": name for name, number in re.findall(r"(\w+) = (\d+),", listed[1])}


KINDS = kinds()


def test_codes_are_those_that_were_kept():
    assert dict(line.split() for line in KEPT.read_text().splitlines()) == KINDS


def test_each_code_has_an_entry_and_each_entry_a_code():
    entries = re.findall(r"^### (.+)$", PAGE, re.M)
    assert sorted(entries) == sorted(KINDS)


def test_each_result_that_is_an_error_has_an_anchor_for_its_other_messages():
    anchors = re.findall(r'<a id="fccl-(\d+)000"></a>(\d+) `?(fccl\w+)', PAGE)
    no_errors = ("fcclSuccess", "fcclInProgress")
    errors = {number: name for number, name in RESULTS.items() if name not in no_errors}
    assert len(errors) > 8
    assert {int(number): name for number, again, name in anchors if number == again} == errors


@pytest.mark.parametrize("code", KINDS)
def test_an_entry_stands_in_the_section_of_its_result(code):
    section = PAGE[: PAGE.index(f"### {code}\n")].rsplit("\n## ", 1)[1].splitlines()[0]
    result = int(code.removeprefix("FCCL-")) // 1000
    assert RESULTS[result] in section if result else section.startswith("Warnings of the log")


def test_the_sources_use_each_code():
    text = "".join(path.read_text() for path in (ROOT / "src").rglob("*.cpp"))
    assert [name for name in KINDS.values() if f"MessageKind::{name}" not in text] == []
