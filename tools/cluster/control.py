"""Speaks with a running cluster: from one of its hosts, or from another terminal."""

import os
import re
from pathlib import Path

import messages
from launch import CONTROL


def ask(body: dict, descriptors: tuple[int, ...] = ()) -> dict:
    """The answer of the cluster that is meant to a request; OSError or ValueError if no cluster answers."""
    name = _meant()
    try:
        connection = messages.connect(name)
    except ConnectionRefusedError:
        raise ValueError(
            f"no cluster is called {name}; {CONTROL} has the name of the one that is meant"
        ) from None
    with connection:
        messages.send(connection, body, descriptors)
        answer = messages.receive(connection)
    if answer is None:
        raise OSError("the cluster ended before it answered")
    if "refused" in answer.body:
        raise ValueError(answer.body["refused"])
    return answer.body


def name_of(process: int | str) -> str:
    """The name of the cluster that this process runs: its socket and its scheduler group have it."""
    return f"fccl-cluster-{process}"


def _meant() -> str:
    if name := os.environ.get(CONTROL):
        return name
    running = sorted(set(re.findall(r"@(fccl-cluster-\d+)$", Path("/proc/net/unix").read_text(), re.M)))
    if len(running) != 1:
        what = f"{len(running)} clusters run ({', '.join(running)})" if running else "no cluster runs"
        raise ValueError(f"{what}: set {CONTROL} to the name of the one that is meant")
    return running[0]
