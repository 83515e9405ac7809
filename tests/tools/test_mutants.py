"""Every mutant still finds the text that it changes, so that ./dev test mutants tries all of them."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "mutants"))
from mutants import MUTANTS, Mutant  # noqa: E402


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_the_right_text_of_a_mutant_occurs_once(mutant: Mutant) -> None:
    assert (ROOT / mutant.path).read_text().count(mutant.right) == 1
