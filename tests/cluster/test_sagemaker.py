"""A script for SageMaker's model parallelism trains on two hosts as in one process, its shards on a host."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

TESTS = ROOT / "sagemaker" / "tests"
TORCHRUN = str(Path(sys.executable).with_name("torchrun"))
ALONE = "import json, small_llama; losses, states = small_llama.one_process(20); " + (
    "print(json.dumps([losses, sum(each.nbytes for each in states.values())]))"
)
LIMIT = 240
STEPS = 20


@pytest.fixture
def environment(environment):
    keys = json.dumps({"hybrid_shard_degree": 2})
    path = os.pathsep.join(filter(None, [str(TESTS), os.environ.get("PYTHONPATH")]))
    return environment | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1", "SM_HP_MP_PARAMETERS": keys}


@pytest.mark.slow
def test_shards_of_a_host_train_as_one_process_does_and_replicas_alone_cross_the_link(
    run, tmp_path, environment
):
    alone = subprocess.run(
        [sys.executable, "-c", ALONE],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
        timeout=LIMIT,
    )
    losses, weights = json.loads(alone.stdout.splitlines()[-1])
    script = str(TESTS / "aws" / "native.py")
    said = run("2x2", "--counters", "bytes.json", "--", TORCHRUN, script, limit=LIMIT)
    assert said.returncode == 0, said.stderr
    (line,) = [each for each in said.stdout.splitlines() if "RESULT " in each]
    found = json.loads(line.partition("RESULT ")[2])
    assert found["backend"] == "fccl"
    assert found["losses"] == pytest.approx(losses, rel=0, abs=1e-9) and len(set(losses)) == STEPS
    # Each of two ranks sums half of the gradients with its replica; FULL_SHARD would move half as much more.
    for link in json.loads((tmp_path / "bytes.json").read_text())["links"]:
        for direction in ("sent", "received"):
            assert 1 <= link[direction] / (STEPS * weights) <= 1.3, (link, weights)
