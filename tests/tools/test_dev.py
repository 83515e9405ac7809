"""./dev answers a word that is none of its commands."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(("word", "meant"), [("frain", "train"), ("tests", "test"), ("clutser", "cluster")])
def test_a_wrong_command_is_one_line_with_the_nearest_one(word: str, meant: str) -> None:
    ended = subprocess.run([ROOT / "dev", word], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr == f"dev: no command is called '{word}'; did you mean {meant}? ./dev help lists all\n"
