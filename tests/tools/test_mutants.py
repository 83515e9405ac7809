"""Every mutant still finds the text that it changes, so that ./dev test mutants tries all of them."""

import importlib.util
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "mutants"))
from mutants import MUTANTS, Mutant  # noqa: E402


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_the_right_text_of_a_mutant_occurs_once(mutant: Mutant) -> None:
    assert (ROOT / mutant.path).read_text().count(mutant.right) == 1


def test_the_copy_for_mutants_has_every_folder_that_cmake_names() -> None:
    # Other tools have a module of the name run, too.
    of_file = importlib.util.spec_from_file_location("run_mutants", ROOT / "tests" / "mutants" / "run.py")
    run = importlib.util.module_from_spec(of_file)
    sys.modules[of_file.name] = run
    of_file.loader.exec_module(run)
    named: set[str] = set()
    for path in ROOT.rglob("CMakeLists.txt"):
        if not path.relative_to(ROOT).parts[0].startswith("build"):
            named |= set(re.findall(r"\{PROJECT_SOURCE_DIR\}/(\w+)", path.read_text()))
    assert "src" in named
    assert named - {"build"} <= set(run.COPIED)
