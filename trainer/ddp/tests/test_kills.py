"""A rank is killed, torchrun starts all anew, and nothing else changes."""

import random
from pathlib import Path

import pytest

from trainer.ddp.tests.etcd_server import EtcdServer
from trainer.ddp.tests.jobs import Job, assert_every_image_once, assert_little_was_redone

pytestmark = pytest.mark.slow

pytest.importorskip("torchvision")


def kill_and_compare(job: Job, backend: str, etcd: EtcdServer, undisturbed: Job, seed: int) -> None:
    endpoint = "127.0.0.1:0" if backend == "c10d" else etcd.endpoint
    place = ["--rdzv-backend", backend, "--rdzv-endpoint", endpoint, "--rdzv-id", job.folder.name]
    agent = job.start("--nnodes", "1", "--nproc-per-node", "2", "--max-restarts", "3", *place)
    job.kill_a_rank(random.Random(seed), agent)
    job.wait(agent)
    assert job.summary["attempts"] == 2, job.printed()
    assert job.summary["weights_sha256"] == undisturbed.summary["weights_sha256"]
    assert_every_image_once(job)
    assert_little_was_redone(job)
    assert job.ranks() == {}


def test_a_run_whose_rank_was_killed_ends_with_the_bits_of_one_that_was_not(
    tmp_path: Path, data: Path, etcd: EtcdServer, undisturbed: Job
) -> None:
    kill_and_compare(Job(tmp_path, data), "etcd-v3", etcd, undisturbed, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["etcd", "etcd-v2", "c10d"])
def test_so_it_does_with_each_rendezvous_of_torch(
    tmp_path: Path, data: Path, etcd: EtcdServer, undisturbed: Job, backend: str
) -> None:
    kill_and_compare(Job(tmp_path, data), backend, etcd, undisturbed, seed=2)
