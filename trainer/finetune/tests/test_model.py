"""The model that is read: in which dtype it is kept, from which folder, and what it does not fit."""

from pathlib import Path

import pytest
import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM

from trainer.finetune import lora
from trainer.finetune.command_line import parse
from trainer.finetune.flags import FlagError, Settings
from trainer.finetune.model import build_model, find_folder, precision_of
from trainer.finetune.tests.folders import write_model
from trainer.fsdp.folder import write_folder

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


def adapter_of(base: Path, folder: Path, **more: object) -> torch.Tensor:
    """Leaves an adapter of peft, and gives the logits that the base has with it."""
    model = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float64)
    torch.manual_seed(6)
    modules = {"target_modules": ["q_proj", "v_proj"], "init_lora_weights": False}
    tuned = get_peft_model(model, LoraConfig(r=4, lora_alpha=8, **modules, **more)).eval()
    tuned.save_pretrained(folder)
    return logits(tuned)


def logits(model: torch.nn.Module) -> torch.Tensor:
    with torch.no_grad():
        return model(input_ids=torch.arange(3, 60).reshape(3, 19)).logits


@pytest.mark.parametrize(
    "more",
    [{}, {"use_rslora": True}, {"rank_pattern": {"q_proj": 2}, "alpha_pattern": {"v_proj": 5}}],
    ids=["plain", "rank-stabilized", "patterns"],
)
def test_an_adapter_of_pefts_is_merged_by_its_own_factors(half: Path, tmp_path: Path, more: dict) -> None:
    wanted = adapter_of(half, tmp_path / "adapter", **more)
    words = ["--use_peft", "--from_peft_checkpoint", str(tmp_path / "adapter"), "--precision", "fp64"]
    model, _ = build_model(settings_of(half, *words), "fp64", CPU, tokens=300)
    write_folder(model, tmp_path / "hf", None, lora.merging(model))
    found = logits(AutoModelForCausalLM.from_pretrained(tmp_path / "hf", dtype=torch.float64).eval())
    assert torch.allclose(found, wanted, rtol=0, atol=1e-9)
    assert (wanted - logits(AutoModelForCausalLM.from_pretrained(half, dtype=torch.float64))).norm() > 0.1


def test_a_layer_with_a_row_for_each_input_gets_the_product_turned() -> None:
    first, second = torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0], [4.0], [5.0]])
    tensors = {
        "h.c.base_layer.weight": torch.ones(2, 3),
        "h.c.lora_A.default.weight": first,
        "h.c.lora_B.default.weight": second,
    }
    found = lora.merged(tensors, {"h.c": 0.5}, {"h.c"})
    assert found.keys() == {"h.c.weight"}
    assert found["h.c.weight"].tolist() == [[2.5, 3, 3.5], [4, 5, 6]]


@pytest.mark.parametrize(
    ("more", "named"),
    [({"use_dora": True}, "lora_magnitude_vector"), ({"modules_to_save": ["lm_head"]}, "modules_to_save")],
)
def test_an_adapter_with_more_than_matrices_is_refused(
    half: Path, tmp_path: Path, more: dict, named: str
) -> None:
    adapter_of(half, tmp_path, **more)
    settings = settings_of(half, "--use_peft", "--from_peft_checkpoint", str(tmp_path))
    with pytest.raises(FlagError, match=f"this adapter has .*{named}.*another --from_peft_checkpoint"):
        build_model(settings, "fp32", CPU, tokens=300)
