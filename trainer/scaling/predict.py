"""Predicts how Llama-2 scales on AWS's instances: the calls of a step, at the library's price, beside an
assumed compute time.
"""

import re
import subprocess
from pathlib import Path

from trainer.fsdp.arguments import Settings, parse
from trainer.fsdp.collectives import NAMES, Tally
from trainer.fsdp.dry_run import collectives_per_step, groups_of, shapes_only
from trainer.scaling.arguments import INSTANCES, Order, OrderError
from trainer.scaling.rows import Row
from trainer.scaling.sizes import ROOT

NODES = (1, 2, 4, 8, 16)
GPUS = 8
FLOPS = {"p4d": 312e12, "p5": 989e12}
"""Of one GPU in bfloat16, as its maker says."""
USED = 0.4
"""The part of them that is assumed to be used while nothing waits."""
MODEL = ("--model", "llama2-7b", "--precision", "bf16")


def predicted(order: Order) -> list[Row]:
    """A row for each kind of instance and number of nodes; compute time is assumed, collectives are
    priced.
    """
    if not order.fccl_info.is_file():
        raise OrderError(
            f"--predict asks {order.fccl_info} for prices, but there is no such program: run ./dev build, "
            f"install the package fccl, or say --fccl-info"
        )
    return [_row(order.fccl_info, instance, nodes) for instance in order.predict for nodes in NODES]


def _row(fccl_info: Path, instance: str, nodes: int) -> Row:
    ranks = nodes * GPUS
    settings = parse([*MODEL, "--ranks", str(ranks), "--global-batch", str(ranks)])
    groups = groups_of(shapes_only(settings))
    parameters = sum(group.elements(1) for group in groups)
    compute = 6 * parameters * settings.seq_len / (FLOPS[instance] * USED)
    calls = {name: tally for name, tally in collectives_per_step(settings, groups).items() if tally.calls}
    seconds = sum(_price(fccl_info, instance, nodes, NAMES[name], tally) for name, tally in calls.items())
    return {
        "instance": INSTANCES[instance],
        "nodes": nodes,
        "ranks": ranks,
        "calls": sum(tally.calls for tally in calls.values()),
        "bytes": sum(tally.bytes for tally in calls.values()),
        "compute_seconds": compute,
        "collective_seconds": seconds,
        "efficiency_nothing_overlaps": compute / (compute + seconds),
        "efficiency_all_overlaps": compute / max(compute, seconds),
        "per_second_nothing_overlaps": _tokens(settings) / (compute + seconds),
    }


def _tokens(settings: Settings) -> int:
    return settings.global_batch * settings.seq_len


def _price(fccl_info: Path, instance: str, nodes: int, collective: str, tally: Tally) -> float:
    """Seconds of these calls, each as long as the mean of them; within one node the bytes over the speed
    of its memory.
    """
    topology = ROOT / f"tests/topologies/{INSTANCES[instance]}.txt"
    size = str(tally.bytes // tally.calls)
    words = [
        "explain",
        collective,
        size,
        "--topology",
        str(topology),
        "--hosts",
        str(max(nodes, 2)),
        "--provider",
        "efa",
    ]
    ended = subprocess.run([fccl_info.resolve(), *words], capture_output=True, text=True)
    price = re.search(r"^ -> \S+ +\d+ +\d+ +([\d.]+)", ended.stdout, re.MULTILINE)
    copies = re.search(r"\bhost=([\d.]+)GB/s", ended.stdout)
    if ended.returncode or not price or not copies:
        raise OrderError(
            f"`{fccl_info} {' '.join(words)}` gave no price: {ended.stderr.strip() or ended.stdout.strip()}"
        )
    return tally.bytes / (float(copies[1]) * 1e9) if nodes == 1 else tally.calls * float(price[1]) / 1e6
