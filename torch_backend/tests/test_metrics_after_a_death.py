"""The rank that serves metrics is killed: the others hear of it, and the next run has the port."""

import json
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator

import pytest

SIZE = 3
# Torch's store is a file, so that no rank's death ends it.
SCRIPT = """
import json, os, sys, time
from datetime import timedelta
import torch, torch.distributed as dist

rank, size, folder = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
torch.set_num_threads(1)
store = dist.FileStore(folder + "/store", size)
dist.init_process_group("fccl", store=store, rank=rank, world_size=size, timeout=timedelta(seconds=30))
cause = ""
try:
    ended = torch.zeros(1)
    while ended.item() == 0:
        ended.fill_(os.path.exists(folder + "/end"))
        dist.all_reduce(ended)
    dist.destroy_process_group()
except dist.DistBackendError as error:
    cause = str(error)
print(json.dumps({"cause": cause, "at": time.time()}), flush=True)
"""


@pytest.fixture
def begin(tmp_path) -> Iterator[Callable[[str, int], list[subprocess.Popen]]]:
    """Starts the ranks of a run, of which rank 0 serves; those that a test has not ended are killed."""
    begun = []

    def begin_run(name: str, port: int) -> list[subprocess.Popen]:
        (tmp_path / name).mkdir()
        processes = [
            subprocess.Popen(
                [sys.executable, "-c", SCRIPT, str(rank), str(SIZE), str(tmp_path / name)],
                env={"FCCL_METRICS_PORT": str(port), "OMP_NUM_THREADS": "1"},
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for rank in range(SIZE)
        ]
        begun.extend(processes)
        return processes

    yield begin_run
    for process in begun:
        process.kill()
        process.communicate()


def end(processes: list[subprocess.Popen]) -> list[tuple[str, str]]:
    """The output and the complaints of each rank."""
    return [process.communicate(timeout=40) for process in processes]


def await_metrics(port: int, serve: Callable[[str], bool]) -> str:
    """The text, once it is as wanted."""
    deadline = time.monotonic() + 30
    text = "nobody serves"
    while not serve(text):
        assert time.monotonic() < deadline, text
        time.sleep(0.02)
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
                text = answer.read().decode()
        except OSError as error:
            text = str(error)
    return text


def ranks_of(processes: list[subprocess.Popen]) -> Callable[[str], bool]:
    return lambda text: all(f'pid="{process.pid}"' in text for process in processes)


@pytest.mark.slow
def test_a_rank_that_serves_and_is_killed_is_named_and_leaves_its_port_to_the_next_run(begin, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    first = begin("first", port)
    await_metrics(port, ranks_of(first))
    # One that has asked for half, and holds its end of the connection over the death.
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(b"GET /metrics HTTP/1.1\r\n")
        first[0].kill()
        killed = time.time()
        said = end(first)
        assert first[0].returncode == -signal.SIGKILL, said[0]
        for rank in range(1, SIZE):
            assert first[rank].returncode == 0, said[rank]
            heard = json.loads(said[rank][0].splitlines()[-1])
            assert f"rank 0 (pid {first[0].pid}" in heard["cause"] and "died" in heard["cause"], heard
            assert heard["at"] - killed < 5, heard
        second = begin("second", port)
        text = await_metrics(port, ranks_of(second))
        assert not any(f'pid="{process.pid}"' in text for process in first)
    (tmp_path / "second" / "end").touch()
    said = end(second)
    assert [process.returncode for process in second] == [0] * SIZE, said
    assert not any("are not served" in complaint for _, complaint in said), said
