"""Tests of fccl_sagemaker.joining: what Python finds, with AWS's own packages beside it and without."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from fccl_sagemaker import joining

BY_ITSELF = """
import importlib.util, torch
print(importlib.util.find_spec("torch.sagemaker"))
import fccl_sagemaker
import torch.sagemaker
print(torch.sagemaker.__file__)
"""
BESIDE_AWS = """
import sys, torch
torch.__path__.append(sys.argv[1])
import fccl_sagemaker
import torch.sagemaker, smdistributed.dataparallel.torch.torch_smddp as smddp
print(torch.sagemaker.WHOSE, smddp.WHOSE)
"""


def printed_by(program: str, *words: str, path: str = "") -> tuple[list[str], str]:
    """Gives what Python prints, and what it says beside that, where torch loads no backend by itself."""
    environment = os.environ | {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0", "PYTHONPATH": path}
    command = [sys.executable, "-W", "always", "-c", program, *words]
    ended = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.split(), ended.stderr


@pytest.mark.slow
def test_where_torch_loads_no_backends_an_import_of_the_package_brings_the_names() -> None:
    before, file = printed_by(BY_ITSELF, path=os.environ.get("PYTHONPATH", ""))[0]
    assert before == "None"
    assert file == os.path.join(joining.INSIDE_TORCH, "sagemaker", "__init__.py")


@pytest.mark.slow
def test_aws_own_packages_stay_and_a_warning_names_their_folders(tmp_path: Path) -> None:
    theirs = tmp_path / "smdistributed" / "dataparallel" / "torch" / "torch_smddp"
    for folder in (tmp_path / "torch" / "sagemaker", theirs):
        folder.mkdir(parents=True)
        (folder / "__init__.py").write_text("WHOSE = 'aws'\n")
    path = os.pathsep.join([os.fspath(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    # The folder of torch itself is not part of the path.
    (tmp_path / "torch").rename(tmp_path / "inside")
    whose, said = printed_by(BESIDE_AWS, os.fspath(tmp_path / "inside"), path=path)
    assert whose == ["aws", "aws"]
    for name, folder in (
        ("torch.sagemaker", tmp_path / "inside" / "sagemaker"),
        ("smdistributed.dataparallel", theirs),
    ):
        assert f"fccl-sagemaker leaves {name} to the package that is installed in {folder};" in said


def test_what_cannot_be_added_is_a_warning_and_lets_torch_be_imported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail() -> None:
        raise OSError("no such folder")

    monkeypatch.setattr(joining, "join_torch", fail)
    with pytest.warns(UserWarning, match=r"torch\.sagemaker could not be added: no such folder"):
        joining.join_torch_quietly()
