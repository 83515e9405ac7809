"""fccl.metrics(): of a counted program, of a rank that comes late, and where a port is asked for."""

import functools
import os
import re
import shutil
import socket
import subprocess
import time
import urllib.request
from pathlib import Path

import fccl
import pytest
import torch
import torch.distributed as dist
from ranks import run_ranks


def value_of(metrics: dict, name: str, **labels: str) -> float:
    """The sum of the samples with these labels."""
    return sum(each["value"] for each in metrics[name] if labels.items() <= each["labels"].items())


def count_calls() -> None:
    dist.barrier()
    before, counted = fccl.metrics(), fccl.counters()["AllGather"]
    for count in (2000, 2000, 500_000):
        parts = [torch.empty(count) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, torch.full((count,), float(dist.get_rank())))
    after, now = fccl.metrics(), fccl.counters()["AllGather"]
    for name, key in (("fccl_calls_total", "calls"), ("fccl_bytes_total", "bytes")):
        taken = [value_of(each, name, collective="AllGather") for each in (before, after)]
        assert taken[1] - taken[0] == now[key] - counted[key]
    assert value_of(after, "fccl_calls_total", collective="AllGather", size="16777216") == 1
    kinds = {"collective": "AllGather", "path": "ring"}
    assert value_of(after, "fccl_call_seconds_count", **kinds) == value_of(after, "fccl_calls_total", **kinds)
    dist.barrier()


def test_metrics_agree_with_the_counters_of_a_counted_program():
    run_ranks(2, count_calls)


def wait_for_a_late_rank() -> None:
    dist.barrier()
    late = dist.get_world_size() - 1
    if dist.get_rank() == late:
        time.sleep(1)
        calls = fccl.metrics(host=True)["fccl_call_age_seconds"]
        [call] = [each for each in calls if each["labels"]["rank"] == "0"]
        assert call["value"] > 0.5 and call["labels"]["peer"] == str(late), call
        assert call["labels"]["collective"] == "AllReduce", call
        time.sleep(1)
    dist.all_reduce(torch.ones(10))
    waited = value_of(fccl.metrics(), "fccl_waited_seconds_total", peer=str(late))
    assert (waited > 1) if dist.get_rank() == 0 else (waited == 0), waited
    assert fccl.metrics()["fccl_call_age_seconds"] == []
    dist.barrier()


def test_a_rank_that_sleeps_before_a_call_is_the_one_waited_for():
    run_ranks(2, wait_for_a_late_rank)


def read_from_port(port: int) -> None:
    dist.all_reduce(torch.ones(10))
    dist.barrier()
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        lines = answer.read().decode().splitlines()
    counted = [line for line in lines if re.match(r'fccl_calls_total.*collective="AllReduce"', line)]
    assert len(counted) == dist.get_world_size() and all(line.endswith(" 1") for line in counted), lines
    dist.barrier()


def ask_for_port(port: int, _rank: int) -> dict:
    os.environ["FCCL_METRICS_PORT"] = str(port)
    return {}


def test_the_port_that_is_asked_for_serves_all_ranks_of_the_host():
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    run_ranks(2, read_from_port, port, prepare=functools.partial(ask_for_port, port))


def check_with(promtool: str) -> None:
    for count in (2, 2000, 500_000):
        dist.all_reduce(torch.ones(count))
    dist.barrier()
    text = fccl.metrics_text(host=True)
    assert "fccl_call_seconds_bucket" in text
    said = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, text=True)
    assert said.returncode == 0, said.stdout + said.stderr
    dist.barrier()


@pytest.mark.slow
@pytest.mark.two_hosts
def test_promtool_accepts_the_text():
    fetched = Path(__file__).parents[2] / "build" / "prometheus" / "usr" / "bin" / "promtool"
    promtool = str(fetched) if fetched.exists() else shutil.which("promtool")
    if promtool is None:
        pytest.skip("there is no promtool: install Debian's package prometheus")
    run_ranks(2, check_with, promtool)
