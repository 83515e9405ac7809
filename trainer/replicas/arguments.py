"""Turns the command line of `python -m trainer.replicas` into an order, and refuses what cannot work."""

import argparse
import math
from dataclasses import dataclass, replace
from pathlib import Path

from trainer.ddp.arguments import Settings as DdpSettings
from trainer.ddp.arguments import SettingsError as DdpSettingsError
from trainer.ddp.arguments import parse as parse_ddp
from trainer.fsdp.arguments import Settings, SettingsError
from trainer.fsdp.arguments import parse as parse_fsdp

PROGRAM = "python -m trainer.replicas"
FSDP, DDP = "trainer.fsdp", "trainer.ddp"


@dataclass(frozen=True)
class Order:
    """Replicas, ranks of each, how often one may die, where they meet, the run's folder, and the trainer's
    own words.
    """

    replicas: int
    nproc_per_node: int
    max_restarts: int
    lighthouse: str | None
    runs: Path | None
    name: str | None
    module: str
    trainer: tuple[str, ...]


@dataclass(frozen=True)
class Place:
    """The run's folder is made here: under this name, or under a free one that begins so."""

    runs: Path
    name: str | None
    stem: str


def parse(words: list[str]) -> Order:
    """The order of a command line; ends the program with status 2 if it means nothing."""
    split = words.index("-m") if "-m" in words else len(words)
    parser = argparse.ArgumentParser(
        prog=PROGRAM, description=__doc__, usage=f"%(prog)s [OPTIONS] -m {FSDP}|{DDP} ..."
    )
    add = parser.add_argument
    add("--replicas", type=_positive, required=True, metavar="R", help="copies of the model")
    add("--nproc-per-node", type=_positive, default=1, metavar="S", help="ranks of each (1)")
    add("--max-restarts", type=int, default=3, metavar="N", help="of each replica (3)")
    add("--lighthouse", metavar="ADDRESS", help="http://HOST:PORT of one that runs; else one is started")
    add("--runs", type=Path, metavar="FOLDER", help="where the run's folder is made (runs)")
    add("--name", help="the run's folder (one that is free)")
    own = parser.parse_args(words[:split])
    module = words[split + 1] if split + 1 < len(words) else ""
    if module not in (FSDP, DDP):
        parser.error(
            f"say -m {FSDP} or -m {DDP}, and its arguments, behind the options, but got "
            f"'{' '.join(words[split:])}'"
        )
    return Order(**vars(own), module=module, trainer=tuple(words[split + 2 :]))


def place_of(order: Order) -> Place:
    """Gives where the run belongs; SettingsError for settings of the trainer that cannot work here."""
    shape = f"{order.replicas}x{order.nproc_per_node}"
    if order.module == FSDP:
        settings = fsdp_settings(order)
        stem = f"{Path(settings.model).name}-replicas-{shape}"
        return Place(order.runs or settings.runs, order.name or settings.name, stem)
    return Place(order.runs or Path("runs"), order.name, f"{ddp_settings(order).arch}-replicas-{shape}")


def fsdp_settings(order: Order) -> Settings:
    """The settings of trainer.fsdp for all ranks of all replicas."""
    settings = parse_fsdp([*order.trainer, "--ranks", str(order.nproc_per_node)])
    _refuse_uneven(order, settings.global_batch, order.nproc_per_node * settings.grad_accum)
    for flag, unfit in (
        ("--fsdp1", settings.fsdp1),
        ("--resume", settings.resume),
        ("--tensor-parallel", settings.tensor_parallel > 1),
        ("--strategy", settings.strategy != "full_shard"),
        ("--precision fp16", settings.precision == "fp16"),
        ("--device cuda", settings.device == "cuda"),
    ):
        if unfit:
            raise SettingsError(
                f"{flag}: replicas train by FSDP2's full_shard on the processor from the first step: "
                "leave it out"
            )
    return settings


def ddp_settings(order: Order) -> DdpSettings:
    """The settings of trainer.ddp for all ranks of all replicas, with the batch of a step of them all."""
    try:
        settings = parse_ddp(list(order.trainer))
    except DdpSettingsError as error:
        raise SettingsError(str(error)) from error
    batch = settings.global_batch or settings.batch_size * order.replicas * order.nproc_per_node
    _refuse_uneven(order, batch, order.nproc_per_node)
    for flag, unfit in (
        ("--dist-backend", settings.dist_backend != "fccl"),
        ("--precision amp", settings.precision == "amp"),
        ("--samples", settings.samples),
        ("--checkpoint-every", settings.checkpoint_every),
    ):
        if unfit:
            raise SettingsError(
                f"{flag}: replicas train by fccl on the processor, and write a checkpoint at the end alone: "
                "leave it out"
            )
    return replace(settings, global_batch=batch)


def among(settings: Settings, replicas: int) -> Settings:
    """The settings by which so many replicas divide a step's batch."""
    return replace(settings, ranks=settings.ranks * replicas)


def _refuse_uneven(order: Order, batch: int, passes_of_a_replica: int) -> None:
    passes = math.lcm(*range(1, order.replicas + 1)) * passes_of_a_replica
    if batch % passes:
        raise SettingsError(
            f"a step of {batch} (--global-batch) does not divide among {order.nproc_per_node} ranks of each "
            f"number of replicas from 1 to {order.replicas}: choose a multiple of {passes}"
        )


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is not positive")
    return number
