"""A rank is killed, torchrun starts all anew, and nothing else changes."""

import os
import random
from pathlib import Path

import pytest

from trainer.ddp.tests.etcd_server import EtcdServer
from trainer.ddp.tests.jobs import Job, assert_every_image_once, assert_little_was_redone

pytestmark = pytest.mark.slow

pytest.importorskip("torchvision")


KILLS = int(os.environ.get("FCCL_TEST_KILLS", "1"))
"""By each rendezvous: ./dev test kills asks for more."""


@pytest.fixture
def job(tmp_path: Path, data: Path) -> Job:
    return Job(tmp_path, data)


@pytest.mark.parametrize("seed", range(KILLS))
@pytest.mark.parametrize("backend", ["etcd-v3", "etcd", "etcd-v2", "c10d"])
def test_a_run_whose_rank_was_killed_ends_with_the_bits_of_one_that_was_not(
    job: Job, etcd: EtcdServer, undisturbed: Job, backend: str, seed: int
) -> None:
    endpoint = "127.0.0.1:0" if backend == "c10d" else etcd.endpoint
    place = ["--rdzv-backend", backend, "--rdzv-endpoint", endpoint, "--rdzv-id", f"{backend}-{seed}"]
    agent = job.start("--nnodes", "1", "--nproc-per-node", "2", "--max-restarts", "3", *place)
    rank, step = job.kill_a_rank(random.Random(f"{backend} {seed}"), agent)
    job.wait(agent)
    print(f"{backend}: rank {rank} was killed in step {step}, attempts began at steps {job.first_steps}")
    assert job.summary["attempts"] == 2, job.printed()
    assert job.summary["weights_sha256"] == undisturbed.summary["weights_sha256"]
    assert_every_image_once(job)
    assert_little_was_redone(job)
    assert job.ranks() == {}
