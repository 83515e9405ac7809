"""Faults of a network and of hosts: every survivor on every host hears of it in time, and by name."""

import json
import os
import statistics
import sys
import threading
import time
from pathlib import Path

import pytest
from conftest import ROOT, left_of

sys.path.insert(0, str(ROOT / "tools/cluster"))
import control

LIBRARY = Path(os.environ.get("FCCL_TEST_LIBRARY", ROOT / "build/libfccl.so"))
RANK = str(Path(__file__).parent / "fault_rank.py")
LEAVING_RANK = str(Path(__file__).parent / "leaving_rank.py")
# The ranks of node1 in a 2x2 cluster, to which the faults happen.
VICTIMS = (2, 3)
REMOTE_ERROR, TIMEOUT = 6, 8
DEADLINE = 2.0
SMALL, LARGE = 8, 4_000_000

pytestmark = pytest.mark.skipif(
    not LIBRARY.exists(), reason=f"{LIBRARY} is not built; FCCL_TEST_LIBRARY names another"
)


@pytest.fixture
def shoot(begin, environment, tmp_path, monkeypatch):
    """Starts 2x2 ranks, brings a fault about, and returns when, and what each rank that survives says."""

    def shoot_once(
        fault: dict, count: int, survivors: tuple[int, ...], number: int
    ) -> tuple[float, list[dict]]:
        folder = tmp_path / str(number)
        folder.mkdir()
        environment["FCCL_TIMEOUT"] = str(DEADLINE)
        process = begin("2x2", "--", sys.executable, RANK, str(LIBRARY), str(folder), str(count))
        says: list[dict] = []
        complaints: list[str] = []
        listening = threading.Thread(target=lambda: complaints.append(process.stderr.read()))
        listening.start()
        while len(says) < 4:
            line = process.stdout.readline()
            assert line, complaints
            says.append(json.loads(line))
        monkeypatch.setenv("FCCL_CLUSTER_CONTROL", f"fccl-cluster-{process.pid}")
        time.sleep(0.02 + 0.01 * (number % 7))
        at = time.monotonic()
        control.ask(fault)
        heard: dict[int, dict] = {}
        while not set(survivors) <= heard.keys():
            line = process.stdout.readline()
            assert line, (heard, complaints)
            said = json.loads(line)
            heard[said["rank"]] = said
        # A stopped process would not end without SIGKILL.
        process.kill()
        process.wait(30)
        listening.join()
        process.stdout.close()
        process.stderr.close()
        return at, [heard[rank] for rank in survivors]

    return shoot_once


FAULTS = {
    "kill": ({"do": "host", "host": "node1", "action": "kill"}, (0, 1), 1.0),
    "stop": ({"do": "host", "host": "node1", "action": "stop"}, (0, 1), DEADLINE + 1.0),
    "link": ({"do": "link", "host": "node1", "rail": "0", "state": "down"}, (0, 1, 2, 3), DEADLINE + 1.0),
}


def names(text: str, ranks: tuple[int, ...]) -> bool:
    return any(f"rank {rank} (pid" in text for rank in ranks)


def check(fault: str, shoot, count: int, number: int, slack: float) -> tuple[float, str]:
    """The time to the last error, and the text of the survivor that had it."""
    body, survivors, bound = FAULTS[fault]
    at, heard = shoot(body, count, survivors, number)
    for said in heard:
        # A cut is between the hosts: each names one of the other.
        others = (0, 1) if said["rank"] in VICTIMS else VICTIMS
        assert names(said["text"], others), said
        assert said["code"] in (REMOTE_ERROR, TIMEOUT), said
        assert said["at"] - at < bound + slack, said
        assert said["destroyed"] < 1 + slack, said
    last = max(heard, key=lambda said: said["at"])
    return last["at"] - at, f"{last['code']}: {last['text']}"


@pytest.mark.parametrize("count", [SMALL, LARGE], ids=["small", "large"])
@pytest.mark.parametrize("fault", FAULTS)
def test_survivors_hear_of_a_fault_by_name_and_in_time(shoot, tmp_path, fault, count):
    check(fault, shoot, count, 0, slack=2.0)
    assert left_of(tmp_path) == []


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_survivors_hear_of_50_faults_by_name_and_in_time(shoot, tmp_path, fault, capsys):
    took = [check(fault, shoot, (SMALL, LARGE)[number % 2], number, slack=0.0) for number in range(50)]
    assert left_of(tmp_path) == []
    times = sorted(seconds for seconds, _ in took)
    with capsys.disabled():
        print(
            f"\n{fault}: median {statistics.median(times):.3f} s, largest {times[-1]:.3f} s: {max(took)[1]}"
        )


def test_a_host_that_is_killed_in_init_is_named_by_every_rank_of_the_other(
    begin, environment, tmp_path, monkeypatch
):
    environment["FCCL_INIT_TIMEOUT"] = "30"
    # The last rank to come, so that node1 can be stopped while it waits for the roster.
    (tmp_path / "withhold.1").touch()
    process = begin("2x2", "--", sys.executable, RANK, str(LIBRARY), str(tmp_path), str(SMALL))
    deadline = time.monotonic() + 30
    while not all((tmp_path / f"in.{rank}").exists() for rank in (0, 2, 3)):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    time.sleep(1)
    monkeypatch.setenv("FCCL_CLUSTER_CONTROL", f"fccl-cluster-{process.pid}")
    control.ask({"do": "host", "host": "node1", "action": "stop"})
    (tmp_path / "release").touch()
    time.sleep(1)
    at = time.monotonic()
    control.ask({"do": "host", "host": "node1", "action": "kill"})
    heard = [json.loads(process.stdout.readline()) for _ in range(2)]
    assert {said["rank"] for said in heard} == {0, 1}
    for said in heard:
        assert said["code"] == REMOTE_ERROR, said
        assert names(said["text"], VICTIMS), said
        assert at < said["at"] < at + 3.0, said


@pytest.mark.parametrize("way", ["exit", "destroy"])
@pytest.mark.parametrize("collective", ["all_gather", "all_reduce", "broadcast"])
def test_a_rank_that_leaves_right_after_its_last_call_is_no_error(
    run, tmp_path, environment, collective, way
):
    environment["FCCL_TIMEOUT"] = "10"
    words = [sys.executable, LEAVING_RANK, str(LIBRARY), str(tmp_path), collective, way]
    said = run("2x2", "--rate", "200mbit", "--", *words)
    assert said.returncode == 0, said.stderr
    heard = [json.loads(line) for line in said.stdout.splitlines()]
    assert [each for each in heard if each["code"]] == []
    assert len(heard) == 4
