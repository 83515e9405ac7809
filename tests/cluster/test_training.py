"""FSDP on two hosts learns what one process learns, and nothing but its collectives crosses the links."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT))
from trainer.fsdp.tests.runs import SMALL, Run

TORCHRUN = str(Path(sys.executable).with_name("torchrun"))
TRAINER = [TORCHRUN, "-m", "trainer.fsdp.tests.without_gloo", *SMALL]
PLAIN_LOSSES = (
    "import sys; from trainer.fsdp.tests.plain_loop import *; write_plain_losses(Path(sys.argv[1]))"
)
TRAINING_LIMIT = 180
HOSTS = LOCAL_RANKS = 2
# The share of headers in an Ethernet frame with TCP's usual segment.
HEADERS = 66 / 1448


@pytest.fixture
def environment(environment):
    return environment | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}


@pytest.fixture(scope="module")
def plain_losses(tmp_path_factory):
    path = tmp_path_factory.mktemp("plain") / "losses"
    subprocess.run([sys.executable, "-c", PLAIN_LOSSES, path], cwd=ROOT, check=True, timeout=TRAINING_LIMIT)
    return list(map(float, path.read_text().splitlines()))


def payload_between_hosts(collectives, strategy):
    """The bytes that one host must send to the other for what rank 0 has counted.

    A shard of each kind goes once to every host: AllGather and ReduceScatter move half of the whole each
    way, and an AllReduce of two hosts one half to be added and one half of sums.
    """
    size = {name: tally["bytes"] for name, tally in collectives.items()}
    if strategy == "hybrid_shard":
        # Each rank has replicas on the other host only, and its shards come from its own.
        return LOCAL_RANKS * size["all_reduce"]
    return size["all_gather"] / HOSTS + size["reduce_scatter"] / HOSTS + size["all_reduce"]


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["full_shard", "hybrid_shard"])
def test_training_on_two_hosts_matches_one_process_and_sends_what_it_must(
    run, tmp_path, plain_losses, strategy
):
    words = ["--strategy", strategy, "--runs", str(tmp_path), "--name", "run"]
    said = run("2x2", "--counters", "bytes.json", "--", *TRAINER, *words, limit=TRAINING_LIMIT)
    assert said.returncode == 0, said.stderr
    trained = Run(tmp_path / "run")
    assert trained.summary["backend"] == "fccl"
    differences = [abs(trained.losses[step] - loss) for step, loss in enumerate(plain_losses, start=1)]
    assert len(differences) == 20 and max(differences) < 1e-4, differences
    payload = payload_between_hosts(trained.summary["collectives"], strategy)
    for link in json.loads((tmp_path / "bytes.json").read_text())["links"]:
        for direction in ("sent", "received"):
            part = link[direction] / payload
            assert 1 <= part <= 1.05 + HEADERS, (link, payload)
