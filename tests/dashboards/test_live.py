"""A live Prometheus, with the deployed rules, that reads a job of two ranks."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import exporters
import pytest
from conftest import ROOT
from dashboards import BINARY, prometheus_program
from job import LATE, Job
from panels import all_panels
from prometheus import Prometheus

pytestmark = pytest.mark.slow

PROGRAM = [sys.executable, str(ROOT / "tools/dashboards/dashboards.py")]
STUCK_LIMIT = 30


def run(*words):
    return subprocess.run([*PROGRAM, *words], cwd=ROOT, capture_output=True, text=True, timeout=200)


def test_no_panel_is_empty_while_a_job_with_a_late_rank_runs():
    said = run()
    assert said.returncode == 0, said.stdout + said.stderr
    counted = dict(re.findall(r"^(.+): (\d+) series$", said.stdout, re.M))
    assert set(counted) == {panel.name for panel in all_panels()}
    assert all(int(number) > 0 for number in counted.values())


def test_a_picture_shows_the_panels(tmp_path):
    picture = tmp_path / "panels.png"
    said = run("--picture", str(picture))
    if "there is no chromium-headless-shell" in said.stderr:
        pytest.skip("there is no chromium-headless-shell: ./dev dashboards --picture installs it")
    assert said.returncode == 0, said.stdout + said.stderr
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_an_empty_panel_fails_and_is_named():
    said = run("--seconds", "0")
    assert said.returncode == 1
    assert "dashboards: no series for " in said.stderr
    assert "fccl: Calls per second: 0 series" in said.stdout


@pytest.fixture
def job(tmp_path):
    running = Job(BINARY, tmp_path)
    yield running
    running.end()


def test_a_stopped_rank_raises_the_alert_of_a_stuck_call_with_its_number(job, tmp_path):
    targets = {
        "fccl": job.ports,
        "dcgm": [exporters.serve(exporters.page_of_dcgm)],
        "efa": [exporters.serve(exporters.page_of_efa)],
    }
    prometheus = Prometheus(prometheus_program(), tmp_path, targets)
    try:
        deadline = time.monotonic() + 60
        while not prometheus.series("fccl_calls_total > 0"):
            assert time.monotonic() < deadline and not job.fault()
            time.sleep(0.5)
        job.stop_late_rank()
        stopped = time.monotonic()
        while not (
            stuck := [each for each in prometheus.alerts() if each["labels"]["alertname"] == "FcclCallStuck"]
        ):
            assert time.monotonic() - stopped < STUCK_LIMIT, prometheus.series("fccl_call_age_seconds", 20)
            time.sleep(0.2)
        print(f"fired after {time.monotonic() - stopped:.1f} s: {stuck[0]['annotations']['summary']}")
    finally:
        prometheus.end()
    assert [each["labels"]["peer"] for each in stuck] == [str(LATE)]
    assert re.search(
        rf"AllReduce of communicator .* has waited [\d.]+s for rank {LATE}",
        stuck[0]["annotations"]["summary"],
    )


def test_a_kill_leaves_no_process(tmp_path):
    def children():
        found = []
        for status in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = status.read_bytes().split(b"\0")
            except OSError:
                continue
            if any(b"fccl-dashboards-" in word for word in words) or words[0] == str(BINARY).encode():
                found.append(words)
        return found

    # The folder of the program stays.
    apart = os.environ | {"TMPDIR": str(tmp_path)}
    process = subprocess.Popen(PROGRAM, cwd=ROOT, env=apart, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 30
    while len(children()) < 3:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    deadline = time.monotonic() + 10
    while children():
        assert time.monotonic() < deadline, children()
        time.sleep(0.1)
