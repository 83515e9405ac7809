"""Any number of ranks learns what one rank does, a resumed run goes on, AdamW learns as in trainer/fsdp."""

import json
from pathlib import Path

import pytest
import torch

from trainer.cpp.tests.runs import SHORT, Run, Runs
from trainer.fsdp import __main__ as fsdp
from trainer.fsdp.arguments import Settings, parse
from trainer.fsdp.model import build_model
from trainer.fsdp.tests.runs import on_ranks

PLAIN = "--optimizer sgd --lr 0.1 --warmup 5 --save-every 0 --steps 50"


def assert_same_losses(run: Run, other: Run, tolerance: float) -> None:
    expected = other.losses
    assert len(expected) == 50 and expected[50] < expected[1] - 1
    differences = {step: abs(loss - expected[step]) for step, loss in run.losses.items()}
    assert max(differences) == 50
    assert max(differences.values()) < tolerance, differences


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-9), ("float32", 1e-4)])
def test_plain_descent_matches_one_rank(runs: Runs, ranks: int, dtype: str, tolerance: float) -> None:
    one = runs.of(1, f"{PLAIN} --dtype {dtype}")
    many = runs.of(ranks, f"{PLAIN} --dtype {dtype}")
    assert list(many.losses) == list(range(1, 51))
    assert_same_losses(many, one, tolerance)


def test_a_width_that_no_number_of_ranks_divides_matches_one_rank(runs: Runs) -> None:
    arguments = f"{PLAIN} --dtype float64 --hidden 56 --layers 1 --global-batch 6"
    assert_same_losses(runs.of(3, arguments), runs.of(1, arguments), 1e-9)


def test_four_ranks_resumed_on_two_go_on_as_if_never_stopped(runs: Runs) -> None:
    arguments = "--lr 3e-3 --steps 50 --dtype float64"
    never_stopped = runs.of(4, f"{arguments} --save-every 25")
    assert [path.name for path in sorted((never_stopped.folder / "checkpoints").iterdir())] == [
        "step-000025",
        "step-000050",
    ]
    place = never_stopped.folder / "checkpoints" / "step-000025"
    resumed = runs.of(2, f"{arguments} --save-every 0 --resume {place}")
    assert min(resumed.losses) == 26
    assert_same_losses(resumed, never_stopped, 1e-9)


def test_adamw_learns_what_the_trainer_in_python_learns(runs: Runs, tmp_path: Path) -> None:
    """Both begin with the same values, which ours gets as a checkpoint of step 0."""
    words = [*SHORT, "--steps", "100", "--save-every", "0"]
    save_first_values(parse([*words, "--ranks", "2"]), tmp_path)
    ours = runs.of(2, f"--steps 100 --save-every 0 --resume {tmp_path}").losses
    words += ["--validate-every", "0", "--sample-tokens", "0", "--name", "python", "--runs", str(tmp_path)]
    on_ranks(2, tmp_path / "log", lambda: fsdp.main(words))
    lines = map(json.loads, (tmp_path / "python" / "metrics.jsonl").read_text().splitlines())
    theirs = {line["step"]: line["loss"] for line in lines}
    assert len(theirs) == 100 and theirs[100] < theirs[1] - 2
    assert all(abs(ours[step] - theirs[step]) < 1e-3 for step in range(1, 11))
    assert abs(mean_of_last(ours) - mean_of_last(theirs)) < 0.02 * mean_of_last(theirs)


def mean_of_last(losses: dict[int, float]) -> float:
    return sum(list(losses.values())[-20:]) / 20


def save_first_values(settings: Settings, folder: Path) -> None:
    whole = build_model(settings)
    model = whole.model
    layers = [[model.embed_tokens]]
    for block in model.layers:
        attention, inner = block.self_attn, block.mlp
        projections = [attention.q_proj, attention.k_proj, attention.v_proj, attention.o_proj]
        layers.append([block.input_layernorm, *projections, block.post_attention_layernorm])
        layers[-1] += [inner.gate_proj, inner.up_proj, inner.down_proj]
    layers.append([model.norm, whole.lm_head])
    for index, parts in enumerate(layers):
        values = torch.cat([part.weight.detach().flatten() for part in parts]).numpy()
        values.tofile(folder / f"layer-{index}.parameters")
        for state in range(2):
            (values * 0).tofile(folder / f"layer-{index}.optimizer-{state}")
    (folder / "complete").write_text("0 float32 adamw 4 64 170 4 257\n")
