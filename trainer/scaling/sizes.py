"""Runs the trainer at one size: hosts, ranks and rails of `./dev cluster`, or all ranks on one host."""

import json
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainer.fsdp.arguments import PROGRAM, SettingsError, parse
from trainer.scaling.arguments import Order, OrderError
from trainer.scaling.rank import LEFT

ROOT = Path(__file__).resolve().parents[2]
CLUSTER = ROOT / "tools/cluster/cluster.py"
QUIET = ("--validate-every", "0", "--save-every", "0", "--sample-tokens", "0")
WARM_UP = 2
"""Steps whose time does not count, if there are more."""


@dataclass(frozen=True)
class Size:
    """The hosts and ranks of one run; no rails: one host."""

    hosts: int
    ranks: int
    rails: int


@dataclass(frozen=True)
class Measured:
    """The measurements of one run."""

    step_seconds: float
    tokens_per_step: int
    epoch_tokens: int
    state_bytes_per_rank: int
    peak_bytes_per_rank: int
    collective_share: float
    bytes_per_host: int


def sizes_of(order: Order) -> list[Size]:
    """All sizes, by rails, then hosts."""
    return [
        Size(hosts, hosts * order.ranks_per_host, rails) for rails in order.rails for hosts in order.hosts
    ]


def run(order: Order, size: Size, name: str) -> Measured:
    """Trains once at this size; the files of the run stay in the order's folder."""
    batch = _batch_of(order, size.ranks)
    runs = order.out.resolve() / "runs"
    counters = runs / f"{name}.bytes.json"
    runs.mkdir(parents=True, exist_ok=True)
    words = [
        str(order.compute),
        *order.trainer,
        *QUIET,
        "--global-batch",
        str(batch),
        "--runs",
        str(runs),
        "--name",
        name,
    ]
    command = _launched(order, size, counters, words)
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if ended.returncode:
        raise OrderError(
            f"training on {size.hosts} hosts with {size.ranks} ranks ended with status {ended.returncode}: "
            f"{_reason(ended.stderr)} (all of it: "
            f"{_kept(runs / name, ended.stderr)})"
        )
    return _measured(runs / name, counters)


def _batch_of(order: Order, ranks: int) -> int:
    """Sequences of a step: as many for each rank as the trainer's own line gives one of the smallest size."""
    least = order.hosts[0] * order.ranks_per_host
    try:
        return parse([*order.trainer, "--ranks", str(least)]).global_batch * ranks // least
    except SettingsError as error:
        raise OrderError(str(error)) from error


def _launched(order: Order, size: Size, counters: Path, words: list[str]) -> list[str]:
    module = ["-m", "trainer.scaling.rank", *words]
    if not size.rails:
        launcher = [
            sys.executable,
            "-m",
            "trainer.launch",
            "--standalone",
            "--nproc-per-node",
            str(size.ranks),
        ]
        return [*launcher, *module]
    links = [
        "--rails",
        str(size.rails),
        "--counters",
        str(counters),
        *(["--rate", order.rate] if order.rate else []),
    ]
    shape = f"{size.hosts}x{order.ranks_per_host}"
    torchrun = str(Path(sys.executable).with_name("torchrun"))
    return [sys.executable, str(CLUSTER), shape, *links, "--", torchrun, *module]


def _reason(said: str) -> str:
    """The trainer's own line, which launcher and cluster follow with theirs; else the last one."""
    lines = said.strip().splitlines() or ["it said nothing"]
    return next((line for line in lines if line.startswith(f"{PROGRAM}: ")), lines[-1])


def _kept(stem: Path, said: str) -> Path:
    log = stem.with_suffix(".log")
    log.write_text(said)
    return log


def _measured(folder: Path, counters: Path) -> Measured:
    summary, left = (json.loads((folder / name).read_text()) for name in ("summary.json", LEFT))
    steps = list(map(json.loads, (folder / "metrics.jsonl").read_text().splitlines()))
    counted = steps[WARM_UP:] or steps
    return Measured(
        step_seconds=statistics.median(step["seconds"] for step in counted),
        tokens_per_step=round(steps[-1]["tokens_per_second"] * steps[-1]["seconds"]),
        peak_bytes_per_rank=summary["peak_bytes_per_rank"],
        collective_share=statistics.median(step["collective_share"] for step in counted),
        bytes_per_host=_most_sent(counters) // len(steps),
        **left,
    )


def _most_sent(counters: Path) -> int:
    """The bytes of the host that sent the most on all its links; none where there was one host without
    links.
    """
    if not counters.exists():
        return 0
    sent: dict[Any, int] = {}
    for link in json.loads(counters.read_text())["links"]:
        sent[link["host"]] = sent.get(link["host"], 0) + link["sent"]
    return max(sent.values(), default=0)
