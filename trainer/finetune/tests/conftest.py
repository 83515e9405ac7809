"""Runs that several tests look at, and llama-cookbook to compare with."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from trainer.finetune.tests.runs import Runs

COOKBOOK = "llama-cookbook==0.0.5.post1"
INSTALLED = Path(__file__).parents[3] / "build" / "llama-cookbook"

# A rank that is forked from a process with threads of OpenMP would wait for them for ever.
torch.set_num_threads(1)


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    return Runs(tmp_path_factory.mktemp("finetune"))


@pytest.fixture(scope="session")
def cookbook() -> None:
    """Makes llama_cookbook importable; its data functions are what ours must agree with."""
    if not (INSTALLED / "llama_cookbook").is_dir():
        install = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "-q",
            "--no-deps",
            "--target",
            str(INSTALLED),
            COOKBOOK,
        ]
        if subprocess.run(install, timeout=120, check=False).returncode:
            pytest.skip(f"{COOKBOOK} could not be installed: no network?")
    if str(INSTALLED) not in sys.path:
        sys.path.append(str(INSTALLED))
