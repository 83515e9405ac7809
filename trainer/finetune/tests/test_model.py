"""The model that is read: in which dtype it is kept, from which folder, and what it does not fit."""

from pathlib import Path

import pytest
import torch

from trainer.finetune.command_line import parse
from trainer.finetune.flags import FlagError, Settings
from trainer.finetune.model import build_model, find_folder, precision_of
from trainer.finetune.tests.folders import write_model

CPU, GPU = torch.device("cpu"), torch.device("cuda")


@pytest.fixture(autouse=True)
def one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"):
        monkeypatch.delenv(variable, raising=False)


@pytest.fixture(scope="module")
def half(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose weights are in bf16, as those of Llama 2 are."""
    return write_model(tmp_path_factory.mktemp("half"), torch.bfloat16)


def settings_of(folder: object, *words: str) -> Settings:
    return parse(["--model_name", str(folder), "--output_dir", "out", *words])


@pytest.mark.parametrize(
    ("words", "dtype"),
    [
        ([], torch.float32),
        (["--use_fp16"], torch.float32),
        (["--precision", "bf16"], torch.float32),
        (["--pure_bf16"], torch.bfloat16),
        (["--precision", "fp64"], torch.float64),
    ],
)
def test_weights_of_a_bf16_folder_are_kept_in_fp32_unless_told_otherwise(
    half: Path, words: list[str], dtype: torch.dtype
) -> None:
    settings = settings_of(half, *words)
    model, _ = build_model(settings, precision_of(settings, CPU), CPU, tokens=300)
    assert {each.dtype for each in model.parameters()} == {dtype}


@pytest.mark.parametrize(
    ("words", "device", "precision"),
    [
        ([], CPU, "fp32"),
        ([], GPU, "bf16"),
        (["--mixed_precision", "False"], GPU, "fp32"),
        (["--fsdp_config.use_fp16"], GPU, "fp16"),
        (["--pure_bf16", "--use_fp16"], GPU, "pure_bf16"),
        (["--pure_bf16", "--precision", "fp32"], GPU, "fp32"),
    ],
)
def test_flags_and_the_device_decide_on_the_precision(
    monkeypatch: pytest.MonkeyPatch, words: list[str], device: torch.device, precision: str
) -> None:
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda: True)
    assert precision_of(settings_of("somewhere", *words), device) == precision


def test_a_model_that_is_no_folder_comes_from_the_hubs_cache(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    commit = "0123456789abcdef0123456789abcdef01234567"
    snapshot = tmp_path / "models--meta-llama--Llama-2-7b-hf" / "snapshots" / commit
    snapshot.mkdir(parents=True)
    (snapshot / "config.json").write_text("{}")
    refs = snapshot.parents[1] / "refs"
    refs.mkdir()
    (refs / "main").write_text(commit)
    assert find_folder("meta-llama/Llama-2-7b-hf") == snapshot
    with pytest.raises(FlagError, match="`hf download meta-llama/other` fetches it, after `hf auth login`"):
        find_folder("meta-llama/other")


def test_a_tokenizer_with_more_tokens_than_the_model_has_rows_is_refused(half: Path) -> None:
    settings = settings_of(half)
    with pytest.raises(FlagError, match="has 321 tokens, but the model's embedding has 320 rows"):
        build_model(settings, "fp32", CPU, tokens=321)
