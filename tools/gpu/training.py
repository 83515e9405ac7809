"""The step that trains a small model by FSDP2 on ranks that share the GPU."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path

from measured import row
from programs import LAST_WORDS, PATHS, Programs, Ranks, started

CASE = "FSDP2, a small Llama"
RANKS = Ranks(2, "processes")
ROOT = Path(__file__).resolve().parents[2]
STEPS = 8
DEADLINE = 30  # seconds of a call
PACKAGES = ("torch", "fccl", "matplotlib", "numpy", "tqdm", "transformers")
# Imports nothing, which would cost as much as training: the trainer says itself what does not work.
ASKED = f"""
import importlib.metadata, importlib.util
lacking = [name for name in {PACKAGES} if importlib.util.find_spec(name) is None]
if lacking:
    raise SystemExit("No module named " + ", ".join(lacking))
print(importlib.metadata.version("torch"))
"""
ASK_SECONDS = 60
NO_CUDA = "--device cuda: t"  # the trainer's message if torch has no CUDA or finds no GPU
# By its address, since a machine without a network may know no name, not even its own.
ADDRESSES = "--rdzv-endpoint 127.0.0.1:0 --local-addr 127.0.0.1"
LAUNCH = f"-m torch.distributed.run --nnodes 1 --rdzv-backend c10d {ADDRESSES}"
OF_LAUNCHER = re.compile(r"^E\d{4} \d\d:", re.MULTILINE)  # how it begins its first line about an end
LEAST_FALL = 0.02  # least fall of the loss over the steps of a run
PRECISIONS = ("fp32", "bf16")
CONNECTIONS = ("8", "32")  # hardware queues of a process
DETERMINISTIC = Path(__file__).with_name("deterministic.py")


@dataclass(frozen=True)
class Training:
    """What trains: the Python, its torch, and the precision."""

    python: str
    version: str
    precision: str
    is_deterministic: bool = False

    @property
    def what(self) -> str:
        """The name of its rows."""
        return f"training with {self.precision}, torch {self.version}"


def rows(programs: Programs, seconds: float) -> Iterator[dict]:
    """Trains, and yields rows that tell if the loss falls on the GPU and how fast it is; needs torch."""
    python, version, lack = ask()
    if lack:
        yield row("training", "unsupported", lack, RANKS, case=CASE)
        return
    for precision in PRECISIONS:
        yield from rows_of_training(Training(python, version, precision), seconds / len(PRECISIONS))


def ask() -> tuple[str, str, str]:
    """The Python that trains, the version of its torch, and what it lacks."""
    python = os.environ.get("FCCL_GPU_PYTHON", sys.executable)
    try:
        asked = subprocess.run(
            [python, "-c", ASKED], capture_output=True, text=True, cwd=ROOT, timeout=ASK_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return python, "", f"{python}: {error}"
    if asked.returncode == 0:
        return python, asked.stdout.strip(), ""
    last = asked.stderr.strip().splitlines()[-1:] or ["could not be asked"]
    return python, "", f"{python}: {last[0]}"


def complaint_of(said: str) -> str:
    """The end of what the trainer complained, without what its launcher says of it afterwards."""
    return " ".join(OF_LAUNCHER.split(said, maxsplit=1)[0].split())[-LAST_WORDS:] or said[-LAST_WORDS:]


def train(
    training: Training, seconds: float, variables: dict | None = None
) -> Generator[dict, None, dict | None]:
    """One run of the trainer; returns its summary, or a row and nothing if it did not end well."""
    launch = [training.python, *LAUNCH.split(), "--nproc-per-node", str(RANKS.count)]
    flags = (
        f"--device cuda --precision {training.precision} --steps {STEPS} --validate-every 0 --save-every 0"
    )
    flags += " --sample-tokens 0 --name gpu --runs FOLDER"
    program = [str(DETERMINISTIC)] if training.is_deterministic else ["-m", "trainer.fsdp"]
    words = [*launch, *program, *flags.split()]
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    ours = {"PYTHONPATH": path, "FCCL_TIMEOUT": str(DEADLINE)}
    with started(words, variables=ours | (variables or {})) as run:
        run.wait(seconds)
        (process,) = run.processes
        try:
            return json.loads((run.folder / "gpu" / "summary.json").read_text())
        except (OSError, ValueError):
            ended = (
                f"not done after {seconds:.0f} s" if process.status is None else f"status {process.status}"
            )
            verdict = "unsupported" if NO_CUDA in process.said("err") else "failed"
            note = f"{ended}: {complaint_of(process.said('err'))}"
            yield row(training.what, verdict, note, RANKS, case=CASE)
            return None


def rows_of_training(training: Training, seconds: float) -> Iterator[dict]:
    """Whether the loss falls, and how fast it is."""
    if (summary := (yield from train(training, seconds))) is None:
        return
    first, last = summary["first_loss"], summary["last_loss"]
    note = f"loss {first:.4f} -> {last:.4f} in {STEPS} steps"
    verdict = "works" if last < first - LEAST_FALL else "wrong"
    yield row(training.what, verdict, note, RANKS, case=CASE)
    yield speed_of(training.what, summary, note)


def speed_of(what: str, summary: dict, note: str) -> dict:
    """A row of tokens per second."""
    speed = summary["tokens_per_second"]
    return row(f"{what}, speed", "measured", note, RANKS, case=CASE, value=speed, unit="tokens/s")


def rows_of_paths(_programs: Programs, seconds: float) -> Iterator[dict]:
    """By each path the losses must have the same bits; then the speed with few and with many connections."""
    python, version, lack = ask()
    if lack:
        yield row("training by each path", "unsupported", lack, RANKS, case=CASE)
        return
    share = seconds / (2 * len(PATHS) + len(CONNECTIONS))
    for precision in PRECISIONS:
        training = Training(python, version, precision, is_deterministic=True)
        losses = {}
        for path in PATHS:
            summary = yield from train(training, share, {"FCCL_CUDA_PATH": path})
            if summary:
                losses[path] = (summary["first_loss"], summary["last_loss"])
        yield agreement(f"{training.what}: the same losses by each path", losses)
    training = Training(python, version, PRECISIONS[-1])
    for connections in CONNECTIONS:
        summary = yield from train(training, share, {"CUDA_DEVICE_MAX_CONNECTIONS": connections})
        if summary:
            yield speed_of(f"{training.what}, {connections} connections", summary, f"{STEPS} steps")


def agreement(what: str, losses: dict[str, tuple[float, float]]) -> dict:
    """A row that compares the first and last losses of each path, to the bit."""
    note = "; ".join(f"{path}: {first!r} -> {last!r}" for path, (first, last) in losses.items())
    if len(losses) < len(PATHS):
        return row(what, "failed", f"only these ended well: {note or 'none'}", RANKS, case=CASE)
    return row(what, "works" if len(set(losses.values())) == 1 else "wrong", note, RANKS, case=CASE)
