"""Turns the command line of `python -m trainer.scaling` into an order, and refuses what cannot work."""

import argparse
import re
import sys
from dataclasses import dataclass
from pathlib import Path

PROGRAM = "python -m trainer.scaling"
INSTANCES = {"p4d": "p4d.24xlarge", "p5": "p5.48xlarge"}
TRAINER = ["-m", "trainer.fsdp"]
MOST_HOSTS, MOST_RAILS = 16, 16


class OrderError(Exception):
    """An order of the command line that cannot be run; the text says why and what to try."""


@dataclass(frozen=True)
class Order:
    """The sizes to measure and the instances to predict."""

    hosts: tuple[int, ...]
    ranks_per_host: int
    rate: str | None
    rails: tuple[int, ...]
    compute: float
    predict: tuple[str, ...]
    turns: int
    out: Path
    fccl_info: Path
    trainer: tuple[str, ...]


def parse(words: list[str]) -> Order:
    """The order of a command line; ends the program with status 2 if it means nothing."""
    split = words.index("--") if "--" in words else len(words)
    parser = _parser()
    given = vars(parser.parse_args(words[:split]))
    trainer = words[split + 1 :]
    if trainer[:2] != TRAINER:
        parser.error(
            f"say -- {' '.join(TRAINER)} and its arguments, but got '{' '.join(trainer) or 'nothing'}'"
        )
    return Order(**given, trainer=tuple(trainer[2:]))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=PROGRAM, description=__doc__, usage="%(prog)s [OPTIONS] -- -m trainer.fsdp ..."
    )
    parser.add_argument(
        "--hosts", type=_numbers(1, MOST_HOSTS), default=(1, 2, 4), metavar="N,N...", help="(1,2,4)"
    )
    parser.add_argument("--ranks-per-host", type=_number(1, 64), default=1, metavar="N", help="(1)")
    parser.add_argument(
        "--rate", type=_rate, help="of each link, as 1gbit; as fast as the machine where left out"
    )
    parser.add_argument(
        "--rails",
        type=_numbers(0, MOST_RAILS),
        default=(1,),
        metavar="N,N...",
        help="links; 0: all ranks on one host (1)",
    )
    parser.add_argument(
        "--compute",
        type=_seconds,
        default=0.0,
        metavar="SECONDS",
        help="of sleep in place of the blocks' work; 0: real work (0)",
    )
    parser.add_argument(
        "--predict", type=_instances, default=(), metavar="NAME,...", help=f"of {', '.join(INSTANCES)}"
    )
    parser.add_argument("--turns", type=_number(1, 99), default=1, metavar="N", help="runs of each size (1)")
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="where rows and charts go")
    parser.add_argument(
        "--fccl-info", type=Path, default=_fccl_info(), metavar="FILE", help="what knows prices (%(default)s)"
    )
    return parser


def _fccl_info() -> Path:
    built = Path("build/fccl-info")
    return built if built.is_file() else Path(sys.executable).with_name("fccl-info")


def _number(least: int, most: int):
    def read(text: str) -> int:
        if not text.isdigit() or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"wants a number from {least} to {most}, but got '{text}'")
        return int(text)

    return read


def _numbers(least: int, most: int):
    def read(text: str) -> tuple[int, ...]:
        numbers = tuple(map(_number(least, most), text.split(",")))
        if list(numbers) != sorted(set(numbers)):
            raise argparse.ArgumentTypeError(f"wants numbers that rise, but got '{text}'")
        return numbers

    return read


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1
    if not 0 <= seconds <= 3600:
        raise argparse.ArgumentTypeError(f"wants seconds from 0 to 3600, but got '{text}'")
    return seconds


def _rate(text: str) -> str:
    if not re.fullmatch(r"[0-9]+(\.[0-9]+)?([kmgt]i?)?(bit|bps)", text):
        raise argparse.ArgumentTypeError(f"wants a number and a unit, as in 500mbit, but got '{text}'")
    return text


def _instances(text: str) -> tuple[str, ...]:
    names = tuple(text.split(","))
    if not set(names) <= set(INSTANCES):
        raise argparse.ArgumentTypeError(f"knows {', '.join(INSTANCES)}, but got '{text}'")
    return names
