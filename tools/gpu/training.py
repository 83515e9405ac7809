"""The step that trains a small model by FSDP2 on ranks that share the GPU."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from measured import row
from programs import LAST_WORDS, Programs, Ranks, started

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


def rows(programs: Programs, seconds: float) -> Iterator[dict]:
    """Trains, and yields rows that tell if the loss falls on the GPU and how fast it is; needs torch."""
    python, version, lack = ask()
    if lack:
        yield row("training", "unsupported", lack, RANKS, case=CASE)
        return
    for precision in ("fp32", "bf16"):
        yield from train(python, version, precision, seconds / 2)


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


def train(python: str, version: str, precision: str, seconds: float) -> Iterator[dict]:
    """One run of the trainer."""
    launch = [python, *LAUNCH.split(), "--nproc-per-node", str(RANKS.count)]
    flags = f"--device cuda --precision {precision} --steps {STEPS} --validate-every 0 --save-every 0"
    flags += " --sample-tokens 0 --name gpu --runs FOLDER"
    words = [*launch, "-m", "trainer.fsdp", *flags.split()]
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    what = f"training with {precision}, torch {version}"
    variables = {"PYTHONPATH": path, "FCCL_TIMEOUT": str(DEADLINE)}
    with started(words, variables=variables) as run:
        run.wait(seconds)
        (process,) = run.processes
        try:
            summary = json.loads((run.folder / "gpu" / "summary.json").read_text())
        except (OSError, ValueError):
            ended = (
                f"not done after {seconds:.0f} s" if process.status is None else f"status {process.status}"
            )
            verdict = "unsupported" if NO_CUDA in process.said("err") else "failed"
            yield row(what, verdict, f"{ended}: {complaint_of(process.said('err'))}", RANKS, case=CASE)
            return
    first, last = summary["first_loss"], summary["last_loss"]
    note = f"loss {first:.4f} -> {last:.4f} in {STEPS} steps"
    verdict = "works" if last < first - LEAST_FALL else "wrong"
    yield row(what, verdict, note, RANKS, case=CASE)
    speed = summary["tokens_per_second"]
    yield row(f"{what}, speed", "measured", note, RANKS, case=CASE, value=speed, unit="tokens/s")
