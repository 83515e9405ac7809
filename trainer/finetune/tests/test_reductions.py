"""Gradients cross the ranks once in a step of the optimizer, however many batches it takes."""

import json
import os
from pathlib import Path

import fccl
import pytest

from trainer.finetune import __main__ as entry
from trainer.finetune.tests.runs import BACKEND, Run, Runs
from trainer.fsdp.tests.runs import on_ranks

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(BACKEND != "fccl", reason="other backends have no counters"),
]

GROUPS = 4
"""Three blocks and the root."""


def train_and_count(words: list[str], place: Path) -> int:
    status = entry.main(words)
    place.with_suffix(f".{os.environ['RANK']}").write_text(json.dumps(fccl.counters()))
    return status


@pytest.mark.parametrize("batches", [1, 3])
def test_a_step_reduces_its_gradients_once(runs: Runs, batches: int) -> None:
    name = f"counted-{batches}"
    words = runs.words(name, f"--num_epochs 1 --max_train_step 6 --gradient_accumulation_steps {batches}")
    words += ["--enable_fsdp", "--norun_validation", "--nosave_hf", "--nosave_model"]
    place = runs.folder / f"{name}.counters"
    on_ranks(2, runs.folder / f"{name}.log", lambda: train_and_count(words, place))
    assert Run(runs.folder / name).summary["steps"] == 6 // batches
    for rank in range(2):
        counters = json.loads(place.with_suffix(f".{rank}").read_text())
        assert counters["ReduceScatter"]["calls"] == 6 // batches * GROUPS
