"""Jobs that share an etcd, and an etcd that goes away while a job trains."""

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from trainer.ddp.tests.etcd_server import EtcdServer
from trainer.ddp.tests.jobs import STEPS_OF_AN_EPOCH, Job, assert_every_image_once, stop

pytest.importorskip("torchvision")

pytestmark = pytest.mark.slow

ALONE = ("--nproc-per-node", "1")
"""For jobs whose agents are what matters: a rank takes seconds to start."""


@pytest.fixture
def own_etcd(tmp_path: Path) -> Iterator[EtcdServer]:
    server = EtcdServer(tmp_path)
    yield server
    server.stop()


def agent_of(job: Job, backend: str, etcd: EtcdServer, *words: str) -> subprocess.Popen:
    place = ["--rdzv-backend", backend, "--rdzv-endpoint", etcd.endpoint]
    return job.start("--nnodes", "1", "--nproc-per-node", "2", *place, *words)


def test_two_jobs_in_turn_without_an_id_both_run_by_etcd_v3(
    tmp_path: Path, data: Path, etcd: EtcdServer
) -> None:
    for name in ("first", "second"):
        job = Job(tmp_path / name, data)
        job.wait(agent_of(job, "etcd-v3", etcd, *ALONE))
        assert job.summary["status"] == "finished" and job.summary["attempts"] == 1


@pytest.mark.parametrize("backend", ["etcd", "etcd-v2"])
def test_the_second_job_without_an_id_by_torchs_etcd_is_told_to_choose_one(
    tmp_path: Path, data: Path, etcd: EtcdServer, backend: str
) -> None:
    # Both tests of this use the id "none", and each kind of rendezvous has its own place for it in etcd.
    first, second = Job(tmp_path / "first", data), Job(tmp_path / "second", data)
    first.wait(agent_of(first, backend, etcd, *ALONE))
    agent = agent_of(second, backend, etcd, *ALONE)
    try:
        assert agent.wait(200) == 1, second.printed()
    finally:
        stop(agent)
    said = second.printed().strip().splitlines()
    assert len(said) == 1 and "'none'" in said[0] and "--rdzv-id" in said[0], said


def test_an_etcd_that_is_away_for_five_seconds_is_not_noticed(
    tmp_path: Path, data: Path, own_etcd: EtcdServer
) -> None:
    job = Job(tmp_path / "job", data, every=20, epochs=60)
    agent = agent_of(job, "etcd-v3", own_etcd)
    job.wait_for_step(1, agent)
    try:
        own_etcd.stop()
        away_since = max(line["step"] for line in job.lines())
        time.sleep(5)
        back_at = max(line["step"] for line in job.lines())
        own_etcd.start()
        print(f"etcd was away in steps {away_since} to {back_at} of {job.epochs * STEPS_OF_AN_EPOCH}")
        assert away_since < back_at < job.epochs * STEPS_OF_AN_EPOCH - 1, "etcd was not away in training"
        job.wait(agent)
    finally:
        stop(agent)
    assert job.summary["attempts"] == 1
    assert_every_image_once(job)


def test_an_etcd_that_is_away_for_good_ends_the_job_with_a_sentence(
    tmp_path: Path, data: Path, own_etcd: EtcdServer
) -> None:
    job = Job(tmp_path / "job", data, epochs=500)
    agent = agent_of(job, "etcd-v3", own_etcd, "--rdzv-conf", "retry_timeout=2")
    job.wait_for_step(1, agent)
    own_etcd.stop()
    try:
        assert agent.wait(120) == 1, job.printed()
    finally:
        stop(agent)
    last = job.printed().strip().splitlines()[-1]
    assert (
        last.startswith(f"trainer.launch: etcd at http://{own_etcd.endpoint} did not answer")
        and "retry_timeout" in last
    )
    assert job.ranks() == {}
