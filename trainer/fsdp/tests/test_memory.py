"""No rank holds the whole model between the start and the first step."""

import json
import threading
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM

from trainer.fsdp import __main__ as entry
from trainer.fsdp import training
from trainer.fsdp.arguments import parse
from trainer.fsdp.dry_run import groups_of
from trainer.fsdp.model import empty_model, model_config
from trainer.fsdp.tests.runs import BACKEND, TEXT, Runs, on_ranks
from trainer.fsdp.tests.test_checkpoint_folder import write_model

WORDS = f"--data {TEXT} --seq-len 16 --global-batch 4 --steps 1 --validate-every 0 --save-every 0".split()
WORDS += ["--sample-tokens", "0", "--backend", BACKEND]
SHAPE = ["--model", "125m", "--layers", "16", "--hidden", "1152"]
RANKS = 4


def anonymous_bytes() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon:"))


def train_and_watch(words: list[str], place: Path) -> int:
    """Trains a step; writes what this rank held before the model was made, and at most until the step."""
    readings: list[int] = []
    begun = threading.Event()

    def watch() -> None:
        while not begun.wait(0.001):
            readings.append(anonymous_bytes())

    watcher = threading.Thread(target=watch)
    make, step = training.empty_model, training.Trainer._step

    def watched_make(settings):
        readings.append(anonymous_bytes())
        watcher.start()
        return make(settings)

    def watched_step(trainer):
        begun.set()
        watcher.join()
        return step(trainer)

    training.empty_model, training.Trainer._step = watched_make, watched_step
    status = entry.main(words)
    place.with_suffix(f".{training.os.environ['RANK']}").write_text(json.dumps([readings[0], max(readings)]))
    return status


def write_large_folder(folder: Path) -> int:
    write_model(folder, "llama")
    torch.manual_seed(0)
    AutoModelForCausalLM.from_config(model_config(parse(SHAPE))).save_pretrained(
        folder, max_shard_size="300MB"
    )
    return 0


@pytest.mark.slow
@pytest.mark.parametrize("source", ["preset", "folder"])
def test_rank_holds_its_quarter_a_block_and_the_root_at_most(runs: Runs, source: str) -> None:
    groups = [group.elements(1) * 4 for group in groups_of(empty_model(parse(SHAPE)))]
    assert 300e6 < sum(groups) / 4 < 310e6
    bound = 1.3 * (sum(groups) / RANKS + max(groups[1:]) + groups[0] + (64 << 20))
    words = SHAPE
    if source == "folder":
        folder = runs.folder / "large"
        on_ranks(1, runs.folder / "large.log", lambda: write_large_folder(folder))
        words = ["--model", str(folder)]
    place = runs.folder / f"memory-{source}"
    words = [*WORDS, *words, "--runs", str(runs.folder), "--name", f"memory-{source}"]
    on_ranks(RANKS, runs.folder / f"memory-{source}.log", lambda: train_and_watch(words, place))
    for rank in range(RANKS):
        before, peak = json.loads(place.with_suffix(f".{rank}").read_text())
        print(f"rank {rank}: {(peak - before) / 2**20:.0f} MiB of {bound / 2**20:.0f}")
        assert peak - before < bound
