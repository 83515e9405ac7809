"""The lines of AWS's pages run as they stand: imports by themselves, and scripts of aws/ on four ranks."""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from small_llama import one_process

HERE = Path(__file__).parent
STEPS = 20

TENSOR_PARALLEL = {"tensor_parallel_degree": 2, "tensor_parallel_seed": 0}
OFFLOADING = {"activation_loading_horizon": 2, "sm_activation_offloading": True}
SCRIPTS: dict[str, tuple[str, dict[str, Any], str]] = {
    "init alone": ("native.py", {}, "fccl"),
    "after smddp": ("after_smddp.py", {}, "smddp"),
    "tensor parallel": ("tensor_parallel.py", TENSOR_PARALLEL, "fccl"),
    "hybrid": ("native.py", {"hybrid_shard_degree": 2}, "fccl"),
    "offloading": ("offloading.py", OFFLOADING, "fccl"),
}


def test_what_aws_samples_import_is_there() -> None:
    names = runpy.run_path(os.fspath(HERE / "aws" / "imports.py"))
    assert callable(names["saver"].save) and callable(names["DelayedParamIniter"])


@pytest.fixture(scope="module")
def wanted() -> list[float]:
    return one_process(STEPS)[0]


@pytest.mark.slow
@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_with_aws_lines_trains_as_one_process_does(name: str, wanted: list[float]) -> None:
    script, keys, backend = SCRIPTS[name]
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=4"]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.fspath(HERE)}
    environment.pop("SM_HP_MP_PARAMETERS", None)
    if keys:
        environment["SM_HP_MP_PARAMETERS"] = json.dumps(keys)
    ended = subprocess.run(
        [*launcher, HERE / "aws" / script], capture_output=True, text=True, env=environment, timeout=600
    )
    assert ended.returncode == 0, ended.stderr[-4000:]
    (line,) = [each for each in ended.stdout.splitlines() if each.startswith("RESULT ")]
    found = json.loads(line.removeprefix("RESULT "))
    assert found["losses"] == pytest.approx(wanted, rel=0, abs=1e-9)
    assert len(set(found["losses"])) == STEPS
    assert found["backend"] == backend
