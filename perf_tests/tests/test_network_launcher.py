"""Processes of the perf binaries that meet by TCP: strangers are turned away, and a death ends the others."""

import contextlib
import os
import socket
import subprocess
from pathlib import Path

import pytest
from run_perf import free_port

BUILD = Path(__file__).resolve().parents[2] / "build"
PROGRAM = BUILD / "perf_tests/all_reduce_perf"
LIMIT = 60

pytestmark = pytest.mark.skipif(
    not (BUILD / "perf_tests/libfccl_launch_network.so").exists(), reason="the perf binaries are not built"
)


@pytest.fixture
def start():
    """Starts a process of two; kills it after the test if it has not ended."""
    port = free_port()
    started = []

    def start_process(number, secret, *words):
        told = {"FCCL_TESTS_NETWORK": f"{number}/2:localhost:{port}", "FCCL_TESTS_NETWORK_SECRET": secret}
        flags = words or ("-b", "8", "-e", "8", "-n", "2")
        process = subprocess.Popen(
            [PROGRAM, *flags],
            env=dict(os.environ) | told,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        started.append(process)
        return process

    start_process.port = port
    yield start_process
    for process in started:
        process.kill()
        process.communicate()


def said_by(process):
    return process.communicate(timeout=LIMIT)[0]


def test_who_has_another_secret_is_turned_away_and_the_run_goes_on(start):
    first = start(0, "right")
    stranger = start(1, "wrong")
    assert "process 0 of this run is gone" in said_by(stranger)
    assert stranger.returncode == 1
    assert first.poll() is None
    second = start(1, "right")
    assert "# Out of bounds values : 0 OK" in said_by(first)
    assert (first.returncode, second.wait(LIMIT)) == (0, 0)


def test_who_connects_and_says_something_else_is_turned_away(start):
    first = start(0, "right")
    with socket.socket() as stranger:
        while stranger.connect_ex(("localhost", start.port)) != 0:
            assert first.poll() is None
        stranger.sendall(b"GET / HTTP/1.1\r\n\r\n" * 9)
        with contextlib.suppress(ConnectionResetError):
            assert stranger.recv(1) == b""
    second = start(1, "right")
    assert "# Out of bounds values : 0 OK" in said_by(first)
    assert second.wait(LIMIT) == 0


def test_a_process_that_is_killed_ends_the_others(start):
    endless = ("-b", "1M", "-e", "1M", "-n", "20", "-N", "0", "-T", "20")
    first, second = start(0, "right", *endless), start(1, "right", *endless)
    for line in first.stdout:
        if line.strip().startswith("1048576"):
            break
    second.kill()
    assert said_by(first)
    assert first.returncode not in (0, None)


@pytest.mark.parametrize("place", ["0/2:localhost", "2/2:localhost:4000", "0/2:localhost:0", "x"])
def test_a_place_that_means_nothing_is_refused(place):
    told = dict(os.environ) | {"FCCL_TESTS_NETWORK": place}
    ran = subprocess.run(
        [PROGRAM, "-b", "8", "-e", "8"], env=told, capture_output=True, text=True, timeout=LIMIT
    )
    assert ran.returncode == 1
    assert "starting by network failed with error 22" in ran.stdout + ran.stderr
