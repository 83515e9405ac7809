"""The table of deploy/README.md: a row for each file, which says how it was tried and by which test."""

import re

import pytest
from pages import ROOT

FOLDER = ROOT / "deploy"
ROW = re.compile(r"^\| `([\w./-]+)` \| (.+?) \| (.*?) ?\| (.+?) \| (.*?) ?\|$", re.M)
STATES = {"run", "checked", "never run"}
ROWS = ROW.findall((FOLDER / "README.md").read_text())


def test_every_file_has_one_row():
    files = {str(path.relative_to(FOLDER)) for path in FOLDER.rglob("*") if path.is_file()} - {"README.md"}
    rows = [file for file, *_ in ROWS]
    assert sorted(rows) == sorted(files)


@pytest.mark.parametrize("row", ROWS, ids=[file for file, *_ in ROWS])
def test_a_row_says_how_the_file_was_tried_and_a_test_that_names_its_folder(row):
    file, _, _, state, test = row
    assert state in STATES
    if state == "never run":
        assert test == ""
        return
    path = re.fullmatch(r"`([\w./]+)`", test)
    assert path, f"{file}: say the test as `tests/...`"
    folder = (ROOT / path[1]).parent
    assert (ROOT / path[1]).exists()
    texts = "".join(each.read_text() for each in folder.glob("*.*") if each.suffix in {".py", ".sh"})
    assert f"deploy/{file.split('/')[0]}" in texts, (
        f"nothing beside {path[1]} speaks of deploy/{file.split('/')[0]}"
    )
