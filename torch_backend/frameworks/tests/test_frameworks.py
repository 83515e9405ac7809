"""Frameworks train through fccl, by its own counters, with the losses that they have under Gloo."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).with_name("scripts")
STEPS = 6
LAUNCHER = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]


@dataclass(frozen=True)
class Row:
    """A script, what it is told beside the backend, and the fewest calls of its rank 0."""

    name: str
    script: str
    calls: dict[str, int]
    told: dict[str, str] = field(default_factory=dict)
    replaces_gloo: bool = False  # the framework takes no other name
    tolerance: float = 1e-9  # float64, unless the framework computes in float32
    launched: bool = True
    backend: str = "fccl"  # the name under which fccl serves


SAGEMAKER = {
    "ACCELERATE_USE_SAGEMAKER": "true",
    "ACCELERATE_TORCH_DEVICE": "cpu",
    "ACCELERATE_BYPASS_DEVICE_MAP": "true",
}
DDP = {"AllReduce": STEPS}
SHARDED = {"AllGather": STEPS, "ReduceScatter": STEPS}
ROWS = [
    Row("accelerate", "accelerate_ddp.py", DDP, replaces_gloo=True),
    Row("transformers", "transformers_trainer.py", DDP, replaces_gloo=True, tolerance=1e-3),
    Row("ignite", "ignite_ddp.py", DDP, replaces_gloo=True),
    Row("fabric", "fabric_ddp.py", DDP, replaces_gloo=True),
    Row("lightning_ddp", "lightning_trainer.py", DDP, {"STRATEGY": "ddp"}),
    Row("lightning_fsdp", "lightning_trainer.py", SHARDED, {"STRATEGY": "fsdp"}),
    Row("lightning_fsdp2", "lightning_trainer.py", SHARDED, {"STRATEGY": "model_parallel"}),
    *[
        Row(f"deepspeed_zero_{stage}", "deepspeed_zero.py", DDP, {"STAGE": str(stage)}, tolerance=1e-5)
        for stage in range(4)
    ],
    Row("deepspeed_smddp", "deepspeed_zero.py", DDP, {"STAGE": "3"}, tolerance=1e-5, backend="smddp"),
    *[
        Row(
            f"accelerate_sagemaker_{strategy}",
            "sagemaker_accelerate.py",
            calls,
            SAGEMAKER | {"STRATEGY": strategy},
            backend="smddp",
        )
        for strategy, calls in (("ddp", DDP), ("fsdp", SHARDED), ("fsdp2", SHARDED))
    ],
    *[
        Row(
            f"transformers_sagemaker_{strategy}",
            "transformers_trainer.py",
            calls,
            SAGEMAKER | {"STRATEGY": strategy},
            tolerance=1e-3,
            backend="smddp",
        )
        for strategy, calls in (("ddp", DDP), ("fsdp2", SHARDED))
    ],
    Row("ray_train", "ray_train.py", DDP, launched=False),
    Row("torchtitan", "torchtitan_trainer.py", SHARDED, tolerance=1e-5),
]


def run(row: Row, backend: str) -> dict:
    environment = {"BACKEND": backend, "OMP_NUM_THREADS": "1", "DS_ACCELERATOR": "cpu", **row.told}
    if row.replaces_gloo and backend == "fccl":
        environment["FCCL_TORCH_REPLACES"] = "gloo"
    command = [sys.executable, *(LAUNCHER if row.launched else []), str(SCRIPTS / row.script)]
    ran = subprocess.run(
        command, capture_output=True, text=True, timeout=280, env={**os.environ, **environment}
    )
    lines = [line for line in ran.stdout.splitlines() if line.startswith("RESULT ")]
    assert ran.returncode == 0 and len(lines) == 1, f"{ran.stdout}\n{ran.stderr}"
    return json.loads(lines[0].removeprefix("RESULT "))


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_framework_trains_through_fccl_as_it_does_through_gloo(row):
    through, under_gloo = run(row, row.backend), run(row, "gloo")
    assert under_gloo["backend"] == "gloo"
    assert through["backend"] == ("gloo" if row.replaces_gloo else row.backend)
    assert through["active"] and not under_gloo["active"] and under_gloo["calls"] == {}
    assert len(through["losses"]) == STEPS and len(set(through["losses"])) == STEPS
    assert through["losses"] == pytest.approx(under_gloo["losses"], rel=row.tolerance)
    for collective, count in row.calls.items():
        assert through["calls"].get(collective, 0) >= count, through["calls"]
