#!/usr/bin/env python3
"""Runs a command on a Slurm whose hosts are those of ./dev cluster."""

import argparse
import os
import secrets
import shutil
import sys
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "cluster"))

import cluster  # noqa: E402
import launch  # noqa: E402
from daemons import KEY, PROGRAMS  # noqa: E402
from shape import Shape, host_name  # noqa: E402

USAGE = """\
./dev slurm HxR [--rate RATE] [--rails N] [--ranks N,N...] [--unsteered] [--prefix] [--counters [FILE]]
            -- COMMAND...
"""
_DAEMONS = str(Path(__file__).with_name("daemons.py"))
TESTS_PATH = "FCCL_TESTS_PATH"


def plan(shape: Shape, command: list[str]) -> list[launch.Start]:
    """The daemons of every host, and the command, whose status counts, beside those of the first host."""
    ranks = ",".join(map(str, shape.ranks))
    adds = {KEY: secrets.token_hex(128)} | _for_jobs(shape)
    return [
        launch.Start(
            host,
            host_name(host),
            [sys.executable, _DAEMONS, ranks, *(command if host == 0 else [])],
            adds,
            is_awaited=host == 0,
        )
        for host in shape.hosts
    ]


def _for_jobs(shape: Shape) -> dict[str, str]:
    settings = launch.open_mpi_on_shared_cores(shape) | {TESTS_PATH: str(ROOT / "build" / "perf_tests")}
    return {name: value for name, value in settings.items() if name not in os.environ}


def run(words: list[str]) -> int:
    """Makes a Slurm that lasts as long as the command; gives the status of the command."""
    parser = argparse.ArgumentParser(prog="./dev slurm", usage=USAGE, description=__doc__)
    order = cluster.parse(words, parser, plan)
    if missing := [program for program in PROGRAMS if shutil.which(program) is None]:
        raise OSError(
            f"a Slurm cannot be started, since there is no {', '.join(missing)} in PATH; run this line: "
            "apt-get install -y --no-install-recommends munge slurmctld slurmd slurm-client"
        )
    return cluster.run(order)


if __name__ == "__main__":
    sys.exit(cluster.complaining(partial(run, sys.argv[1:])))
