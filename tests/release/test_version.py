"""The version stands in CMakeLists.txt, and where no program can read it from there it says the same."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VERSION = re.search(r"project\(fccl VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text())[1]


def test_who_cites_fccl_cites_this_version():
    assert f"\nversion: {VERSION}\n" in (ROOT / "CITATION.cff").read_text()


def test_no_project_file_has_a_version_of_its_own():
    for file in (ROOT / "pyproject.toml", ROOT / "sagemaker" / "pyproject.toml"):
        assert re.findall(r"^version *=", file.read_text(), re.M) == [], file
