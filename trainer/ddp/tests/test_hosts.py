"""Hosts die and come while a job trains; every image is taken once all the same."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from trainer.ddp.tests import on_hosts
from trainer.ddp.tests.etcd_server import EtcdServer
from trainer.ddp.tests.jobs import QUICK_MEETING, Job, assert_every_image_once, assert_little_was_redone

pytest.importorskip("torchvision")

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

CLUSTER_SECONDS = 600


def run_on_hosts(scenario: str, folder: Path, data: Path) -> Job:
    trial = subprocess.run(["unshare", "--net", "--pid", "--fork", "true"], capture_output=True, text=True)
    if trial.returncode:
        pytest.skip(f"namespaces cannot be made here: {trial.stderr.strip()}")
    words = [sys.executable, on_hosts.CLUSTER, "4x1", "--", sys.executable, on_hosts.__file__]
    ended = subprocess.run(
        [*words, scenario, str(folder), str(data)],
        env={**os.environ, "PYTHONPATH": str(on_hosts.REPOSITORY)},
        capture_output=True,
        text=True,
        timeout=CLUSTER_SECONDS,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    job = Job(folder, data, epochs=on_hosts.LEAST_EPOCHS)
    assert_every_image_once(job)
    assert_little_was_redone(job)
    assert_the_next_step_came_soon(job)
    return job


def assert_the_next_step_came_soon(job: Job) -> None:
    """Hosts miss one that gives no sign, wait for others to come, and then start Python as at first."""
    took = json.loads((job.folder / "recovered").read_text())
    meeting = {name: float(value) for name, value in (word.split("=") for word in QUICK_MEETING.split(","))}
    missing = meeting["keep_alive_interval"] * meeting["keep_alive_max_attempt"]
    print(f"the next step came after {took['next_step']:.1f} s, a first one after {took['first_step']:.1f} s")
    assert took["next_step"] <= meeting["last_call_timeout"] + missing + 5 * took["first_step"], took


def test_a_job_goes_on_from_two_hosts_to_one_and_to_two(tmp_path: Path, data: Path) -> None:
    job = run_on_hosts("leave_and_join", tmp_path / "job", data)
    # Hosts that came one after the other made starts of their own.
    worlds = iter(job.summary["worlds"])
    assert all(world in worlds for world in (2, 1, 2))


def test_a_job_goes_on_when_the_first_of_three_hosts_dies(tmp_path: Path, data: Path) -> None:
    job = run_on_hosts("first_of_three_dies", tmp_path / "job", data)
    assert job.summary["worlds"][-1] == 2 and 3 in job.summary["worlds"]


def test_a_job_of_two_agents_on_one_machine_goes_on_when_one_is_killed(
    tmp_path: Path, data: Path, etcd: EtcdServer
) -> None:
    job = Job(tmp_path / "job", data, epochs=20)
    place = ["--rdzv-backend", "etcd-v3", "--rdzv-endpoint", etcd.endpoint, "--rdzv-conf", QUICK_MEETING]
    words = ["--nnodes", "1:2", "--nproc-per-node", "1", "--max-restarts", "5", *place, "--rdzv-id", "agents"]
    staying, dying = job.start(*words), job.start(*words)
    # One agent may have begun alone.
    job.wait_for_step(3, staying, dying, world=2)
    dying.kill()
    job.wait(staying)
    dying.wait()
    assert job.summary["worlds"][-1] == 1
    assert_every_image_once(job)
    assert_little_was_redone(job)
    assert job.ranks() == {}
