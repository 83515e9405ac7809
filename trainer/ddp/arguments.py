"""Turns the command line into settings: the flags of TorchElastic's ImageNet example, and more."""

import argparse
from dataclasses import dataclass
from pathlib import Path

PROGRAM = "trainer.ddp"
BACKENDS = ("fccl", "gloo", "nccl")
PRECISIONS = ("fp32", "amp", "fp64")


class SettingsError(Exception):
    """A setting, or a pair of settings, that cannot work; its text says which and what to try."""


@dataclass(frozen=True)
class Settings:
    """Everything a run depends on; the same on every rank."""

    data: Path
    arch: str
    workers: int
    epochs: int
    batch_size: int
    global_batch: int | None
    lr: float
    momentum: float
    weight_decay: float
    print_freq: int
    dist_backend: str
    checkpoint_file: Path
    image_size: int
    seed: int
    dropout: float | None
    steps: int | None
    checkpoint_every: int | None
    precision: str
    samples: Path | None
    recovery: str

    def batch_of_a_rank(self, ranks: int) -> int:
        """How many images each of `ranks` ranks takes in a step."""
        if self.global_batch is None:
            return self.batch_size
        if self.global_batch % ranks:
            raise SettingsError(
                f"--global-batch {self.global_batch} does not divide among {ranks} ranks: choose a multiple "
                "of every number of ranks that the job may run on"
            )
        return self.global_batch // ranks

    @property
    def summary_file(self) -> Path:
        return self.checkpoint_file.with_name(self.checkpoint_file.name + ".json")


def parse(words: list[str]) -> Settings:
    """The settings that these words ask for; argparse ends the process over words that it does not know."""
    parser = argparse.ArgumentParser(
        prog=PROGRAM, description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    _add_known_flags(parser)
    _add_further_flags(parser)
    return Settings(**vars(parser.parse_args(words)))


def _add_known_flags(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("data", type=Path, metavar="DIR", help="a folder with train/CLASS/IMAGE and val/CLASS/IMAGE")
    add("-a", "--arch", default="resnet18", help="a classifier of torchvision, for example resnet50")
    add("-j", "--workers", type=_at_least(0), default=0, help="processes per rank that read images")
    add("--epochs", type=_at_least(1), default=90, help="epochs of the whole run")
    add("-b", "--batch-size", type=_at_least(1), default=32, help="images per rank and step")
    add("--lr", "--learning-rate", dest="lr", type=float, default=0.1, help="divided by 10 each 30 epochs")
    add("--momentum", type=float, default=0.9, help="of SGD")
    add("--wd", "--weight-decay", dest="weight_decay", type=float, default=1e-4, help="of SGD")
    add("-p", "--print-freq", type=_at_least(1), default=10, help="steps between two lines of progress")
    add("--dist-backend", choices=BACKENDS, default="fccl", help="nccl needs a GPU per rank")
    add("--checkpoint-file", type=Path, default=Path("/tmp/checkpoint.pth.tar"), help="also: where to go on")


def _add_further_flags(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--global-batch", type=_at_least(1), help="images per step of all ranks, in place of --batch-size")
    add("--image-size", type=_at_least(8), default=224, help="pixels of a side")
    add("--seed", type=_at_least(0), default=0, help="of weights, order, crops, flips and dropout")
    add("--dropout", type=_probability, metavar="P", help="of the dropout layers, in place of their own")
    add("--steps", type=_at_least(1), help="end after so many steps, or after --epochs if that is less")
    add("--checkpoint-every", type=_at_least(1), metavar="STEPS", help="else once an epoch")
    add("--precision", choices=PRECISIONS, default="fp32", help="amp: bfloat16 by autocast, on CUDA")
    add("--samples", type=Path, metavar="FOLDER", help="write there which rank takes which images")
    add("--recovery", choices=("restart", "in-process"), default="restart", help="after a rank has died")


def _probability(text: str) -> float:
    if not 0 <= float(text) <= 1:
        raise argparse.ArgumentTypeError(f"{text} is not from 0 to 1")
    return float(text)


def _at_least(least: int) -> "type[int]":
    def number(text: str) -> int:
        if int(text) < least:
            raise argparse.ArgumentTypeError(f"{text} is less than {least}")
        return int(text)

    number.__name__ = "number"
    return number  # type: ignore[return-value]
