"""Turns the command line of `python -m trainer.replicas` into an order, and refuses what cannot work."""

import argparse
import math
from dataclasses import dataclass, replace

from trainer.fsdp.arguments import Settings, SettingsError
from trainer.fsdp.arguments import parse as parse_trainer

PROGRAM = "python -m trainer.replicas"
TRAINER = ["-m", "trainer.fsdp"]


@dataclass(frozen=True)
class Order:
    """Replicas, ranks of each, how often one may die, where they meet, and the trainer's own words."""

    replicas: int
    nproc_per_node: int
    max_restarts: int
    lighthouse: str | None
    trainer: tuple[str, ...]


def parse(words: list[str]) -> Order:
    """The order of a command line; ends the program with status 2 if it means nothing."""
    split = words.index("-m") if "-m" in words else len(words)
    parser = argparse.ArgumentParser(
        prog=PROGRAM, description=__doc__, usage="%(prog)s [OPTIONS] -m trainer.fsdp ..."
    )
    parser.add_argument("--replicas", type=_positive, required=True, metavar="R", help="copies of the model")
    parser.add_argument("--nproc-per-node", type=_positive, default=1, metavar="S", help="ranks of each (1)")
    parser.add_argument("--max-restarts", type=int, default=3, metavar="N", help="of each replica (3)")
    parser.add_argument(
        "--lighthouse", metavar="ADDRESS", help="http://HOST:PORT of one that runs; else one is started"
    )
    order = Order(**vars(parser.parse_args(words[:split])), trainer=tuple(words[split + 2 :]))
    if words[split : split + 2] != TRAINER:
        parser.error(
            f"say {' '.join(TRAINER)} and its arguments behind the options, but got "
            f"'{' '.join(words[split:])}'"
        )
    return order


def trainer_settings(order: Order) -> Settings:
    """The trainer's settings for all ranks of all replicas; SettingsError for those that cannot work here."""
    settings = parse_trainer([*order.trainer, "--ranks", str(order.nproc_per_node)])
    passes = math.lcm(*range(1, order.replicas + 1)) * order.nproc_per_node * settings.grad_accum
    if settings.global_batch % passes:
        raise SettingsError(
            f"--global-batch {settings.global_batch} does not divide among {order.nproc_per_node} ranks "
            f"of each number of "
            f"replicas from 1 to {order.replicas}: choose a multiple of {passes}"
        )
    for flag, unfit in (
        ("--fsdp1", settings.fsdp1),
        ("--resume", settings.resume),
        ("--tensor-parallel", settings.tensor_parallel > 1),
        ("--strategy", settings.strategy != "full_shard"),
        ("--precision fp16", settings.precision == "fp16"),
    ):
        if unfit:
            raise SettingsError(
                f"{flag}: replicas train by FSDP2's full_shard from the first step: leave it out"
            )
    return settings


def among(settings: Settings, replicas: int) -> Settings:
    """The settings by which so many replicas divide a step's batch."""
    return replace(settings, ranks=settings.ranks * replicas)


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is not positive")
    return number
