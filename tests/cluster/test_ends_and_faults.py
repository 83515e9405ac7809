"""Clusters that are ended, and faults that a user brings about: links down, hosts killed or stopped."""

import signal
import sys
import time

import pytest
from conftest import PROGRAM, left_of, listening_names, wait_until

pytestmark = pytest.mark.emulator

STEER = " ".join(PROGRAM)
# Started, with a child of its own that would outlive it.
LINGER = "echo started; setsid sleep 600 & sleep 600"


def wait_for_lines(process, count):
    return [process.stdout.readline() for _ in range(count)]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_a_signal_ends_all_processes(begin, tmp_path, number):
    process = begin("2x2", "--rate", "1gbit", "--", "bash", "-c", LINGER)
    wait_for_lines(process, 4)
    wait_until(lambda: len(left_of(tmp_path, 0)) >= 4 * 3)
    process.send_signal(number)
    status = process.wait(10)
    assert status == (-9 if number == signal.SIGKILL else 128 + number)
    assert left_of(tmp_path) == []
    # A process that ends loses its environment before its sockets.
    wait_until(lambda: f"fccl-cluster-{process.pid}" not in listening_names())


def test_what_a_command_leaves_running_ends_with_the_cluster(run, tmp_path):
    assert run("2x1", "--", "bash", "-c", "setsid sleep 600 & exit 0").returncode == 0
    assert left_of(tmp_path) == []


def test_a_link_is_taken_down_and_up(run):
    script = (
        "import os, socket, subprocess, sys, time\n"
        "steer = sys.argv[1:]\n"
        "end = socket.socket(type=socket.SOCK_DGRAM)\n"
        "end.settimeout(0.5)\n"
        "if os.environ['RANK'] == '1':\n"
        "  end.bind(('', 9))\n"
        "  end.settimeout(20)\n"
        "  while (said := end.recvfrom(9))[0] != b'end': end.sendto(*said)\n"
        "  sys.exit()\n"
        "def reaches():\n"
        "  end.sendto(b'?', ('10.77.0.2', 9))\n"
        "  try: return end.recv(9) == b'?'\n"
        "  except TimeoutError: return False\n"
        "while not reaches(): pass\n"
        "subprocess.run([*steer, 'link', 'node1', '0', 'down'], check=True)\n"
        "print(reaches())\n"
        "subprocess.run([*steer, 'link', 'node1', '0', 'up'], check=True)\n"
        "print(any(reaches() for _ in range(10)))\n"
        "end.sendto(b'end', ('10.77.0.2', 9))\n"
    )
    said = run("2x1", "--", sys.executable, "-c", script, *PROGRAM)
    assert said.returncode == 0, said.stderr
    assert said.stdout.split() == ["False", "True"]


def test_a_killed_host_fails_with_the_status_of_its_ranks_and_the_others_go_on(run):
    script = (
        f"((RANK != 0)) || {{ {STEER} host node1 kill; sleep 0.3; echo alive; exit 0; }}; sleep 50 & sleep 50"
    )
    said = run("2x1", "--", "bash", "-c", script)
    assert said.returncode == 128 + 9
    assert said.stdout.split() == ["alive"]


def test_a_stopped_host_stands_still_until_it_continues(begin, environment, tmp_path):
    process = begin("2x1", "--", "bash", "-c", "while :; do echo $RANK >>rank$RANK; sleep 0.02; done")
    environment["FCCL_CLUSTER_CONTROL"] = f"fccl-cluster-{process.pid}"
    files = [tmp_path / f"rank{rank}" for rank in range(2)]
    wait_until(lambda: all(file.exists() for file in files))

    def steer(action):
        steering = begin("host", "1", action)
        assert steering.wait(10) == 0, steering.stderr.read()

    steer("stop")
    time.sleep(0.1)
    sizes = [file.stat().st_size for file in files]
    wait_until(lambda: files[0].stat().st_size > sizes[0] + 10)
    assert files[1].stat().st_size == sizes[1]
    steer("cont")
    wait_until(lambda: files[1].stat().st_size > sizes[1])
