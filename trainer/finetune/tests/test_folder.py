"""The folder of a run has hf/, the adapter, llama-recipes' folders and the summary."""

import math
from pathlib import Path

import pytest
import torch
import torch.distributed.checkpoint as dcp
import yaml
from peft import PeftModel
from torch import nn
from transformers import AutoModelForCausalLM, AutoTokenizer, default_data_collator

from trainer.finetune.tests.plain_loop import answer_loss, plain_model, samples_of
from trainer.finetune.tests.runs import Run, Runs
from trainer.finetune.tests.test_matches_one_process import ADAPTER, WHOLE

pytestmark = pytest.mark.slow

TOKENS = torch.arange(3, 60).reshape(3, 19)
ALL = f"{WHOLE} --gradient_accumulation_steps 2"
TUNED = f"{ADAPTER} --num_epochs 3 --max_train_step 20"


def logits(model: nn.Module) -> torch.Tensor:
    with torch.no_grad():
        return model.eval()(TOKENS).logits


def from_hf(run: Run) -> nn.Module:
    return AutoModelForCausalLM.from_pretrained(run.folder / "hf", dtype=torch.float64)


def recipes_folder(runs: Runs, run: Run) -> Path:
    return Path(f"{run.folder}/fine-tuned-{runs.model}")


def assert_equal(one: torch.Tensor, other: torch.Tensor) -> None:
    assert ((one - other).norm() / other.norm()).item() < 1e-6


def test_hf_is_the_model_of_the_last_sharded_checkpoint_with_its_tokenizer(runs: Runs) -> None:
    run = runs.of(2, ALL)
    losses = run.summary["eval_loss"]
    assert losses[-1] == min(losses), "the last checkpoint would be an earlier epoch's"
    trained = plain_model(runs)
    weights = trained.state_dict()
    dcp.load({"model": weights}, checkpoint_id=recipes_folder(runs, run), no_dist=True)
    trained.load_state_dict(weights)
    assert_equal(logits(from_hf(run)), logits(trained))
    assert (logits(trained) - logits(plain_model(runs))).norm() > 0.01
    before, after = (AutoTokenizer.from_pretrained(folder) for folder in (runs.model, run.folder / "hf"))
    assert before.get_vocab() == after.get_vocab() and after("a lazy dog") == before("a lazy dog")


def test_merged_hf_is_the_base_with_the_adapter(runs: Runs) -> None:
    run = runs.of(2, TUNED)
    assert_equal(logits(from_hf(run)), logits(PeftModel.from_pretrained(plain_model(runs), run.folder)))
    assert (logits(from_hf(run)) - logits(plain_model(runs))).norm() > 0.001


def test_the_summary_has_a_loss_and_a_perplexity_per_epoch(runs: Runs) -> None:
    run = runs.of(2, ALL)
    summary = run.summary
    assert (summary["status"], summary["epochs"], summary["steps"]) == ("finished", 2, len(run.lines))
    assert [math.exp(loss) for loss in summary["eval_loss"]] == pytest.approx(summary["eval_perplexity"])
    assert len(summary["train_loss"]) == len(summary["eval_loss"]) == 2
    assert summary["trainable_parameters"] == summary["parameters"] == plain_model(runs).num_parameters()
    assert summary["tokens_per_second"] > 0
    adapter = runs.of(2, TUNED).summary
    assert adapter["trainable_parameters"] == 3 * 8 * (32 + 32 + 32 + 16)


def test_losses_of_an_epoch_are_the_means_of_its_batches(runs: Runs) -> None:
    run = runs.of(2, ALL)
    summary, model = run.summary, from_hf(run).eval()
    for epoch, loss in enumerate(summary["train_loss"], start=1):
        # The last step of an epoch may have taken one batch of each rank, and not two.
        batches = [line["loss"] for line in run.lines if line["epoch"] == epoch for _ in line["samples"]]
        assert loss == pytest.approx(sum(batches) / len(batches), rel=0, abs=1e-12)
    chunks = samples_of(runs, training=False)
    used = len(chunks) // 2 * 2
    assert used > 0
    with torch.no_grad():
        losses = [answer_loss(model, default_data_collator([dict(each)])).item() for each in chunks[:used]]
    assert summary["eval_loss"][-1] == pytest.approx(sum(losses) / used, rel=0, abs=1e-9)


def test_parameters_lie_beside_the_checkpoint(runs: Runs) -> None:
    run = runs.of(2, ALL)
    parameters = yaml.safe_load((recipes_folder(runs, run) / "train_params.yaml").read_text())
    assert parameters["model_name"] == str(runs.model) and parameters["sharding_strategy"] == "FULL_SHARD"


@pytest.mark.slow
def test_a_full_checkpoint_with_its_optimizer_is_one_file_each(runs: Runs) -> None:
    words = (
        "--num_epochs 1 --max_train_step 3 --checkpoint_type StateDictType.FULL_STATE_DICT --save_optimizer"
    )
    run = runs.of(2, words)
    name = str(runs.model).replace("/", "--")
    folder = recipes_folder(runs, run)
    assert {file.name for file in folder.iterdir()} == {
        f"{name}-0.pt",
        f"optimizer-{name}-0.pt",
        "train_params.yaml",
    }
    whole = plain_model(runs)
    whole.load_state_dict(torch.load(folder / f"{name}-0.pt"))
    assert_equal(logits(whole), logits(from_hf(run)))


@pytest.mark.slow
def test_one_process_leaves_one_file(runs: Runs) -> None:
    run = runs.of(0, "--max_train_step 20")
    whole = plain_model(runs)
    whole.load_state_dict(torch.load(run.folder / "model.pt"))
    assert_equal(logits(whole), logits(from_hf(run)))


@pytest.mark.slow
def test_frozen_blocks_stay_and_the_others_learn(runs: Runs) -> None:
    run = runs.of(2, "--num_epochs 1 --max_train_step 3 --freeze_layers --num_freeze_layers 2")
    before, after = plain_model(runs).state_dict(), from_hf(run).state_dict()
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    frozen = {name for name in before if name.startswith(("model.layers.0.", "model.layers.1."))}
    assert changed == set(before) - frozen


@pytest.mark.slow
def test_a_run_goes_on_with_an_adapter_of_an_earlier_one(runs: Runs) -> None:
    first = runs.of(2, TUNED)
    again = runs.of(2, f"{ADAPTER} --lr 0 --max_train_step 2 --from_peft_checkpoint {first.folder}")
    assert_equal(logits(from_hf(again)), logits(from_hf(first)))


@pytest.mark.slow
def test_nothing_is_saved_that_was_not_asked_for(runs: Runs) -> None:
    run = runs.of(2, "--num_epochs 1 --max_train_step 2 --nosave_hf --nosave_model --norun_validation")
    assert {file.name for file in run.folder.iterdir()} == {"metrics.jsonl", "summary.json"}
    assert run.summary["eval_loss"] == []
