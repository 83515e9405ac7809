"""A causal model that lies in a Hugging Face folder is trained in shards, and comes out as such a folder."""

import json
from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import CONFIG_MAPPING, AutoModelForCausalLM, AutoTokenizer, PreTrainedTokenizerFast

from trainer.fsdp import __main__ as entry
from trainer.fsdp import training
from trainer.fsdp.tests.runs import BACKEND, SHORT, TEXT, Runs, on_ranks
from trainer.fsdp.tests.test_precision import EXACT, largest_difference, plain_losses_of

SHAPES = {
    "llama": {"num_key_value_heads": 2},
    "mistral": {"num_key_value_heads": 2, "sliding_window": 16},
    "gpt_neox": {},
    "gpt2": {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0},
    "mixtral": {"num_key_value_heads": 2, "num_local_experts": 4},
}


def write_model(folder: Path, kind: str, **more: object) -> int:
    """A small model and a tokenizer of 300 byte pairs, as save_pretrained leaves them."""
    pairs = Tokenizer(models.BPE())
    pairs.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    pairs.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    pairs.train([str(TEXT / "message.py")], trainers.BpeTrainer(vocab_size=300, initial_alphabet=alphabet))
    PreTrainedTokenizerFast(tokenizer_object=pairs).save_pretrained(folder)
    shape = {"vocab_size": 300, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
    shape |= {} if kind == "gpt2" else {"intermediate_size": 128}
    config = CONFIG_MAPPING[kind](**shape, **SHAPES[kind], **more, bos_token_id=1, eos_token_id=2)
    torch.manual_seed(0)
    AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    return 0


def folder_of(runs: Runs, kind: str, **more: object) -> Path:
    folder = runs.folder / "-".join([kind, *more])
    if not folder.exists():
        # In a process of its own: the tokenizer starts threads, which a later fork would not have.
        on_ranks(1, folder.with_suffix(".log"), lambda: write_model(folder, kind, **more))
    return folder


def test_llama_from_a_folder_learns(runs: Runs) -> None:
    folder = folder_of(runs, "llama")
    run = runs.of(2, f"--model {folder} --lr 3e-3 --sample-tokens 4", base=SHORT)
    assert run.summary["parameters"] < 150_000
    assert run.calls_per_step("all_gather") == 5
    assert run.summary["last_loss"] < run.summary["first_loss"] - 0.5


@pytest.mark.parametrize(
    ("kind", "more", "arguments"),
    [
        ("llama", {"tie_word_embeddings": True}, ""),
        pytest.param("llama", {"tie_word_embeddings": True}, "--tensor-parallel 2", marks=pytest.mark.slow),
        pytest.param("gpt_neox", {}, "", marks=pytest.mark.slow),
        pytest.param("llama", {}, "--fsdp1", marks=pytest.mark.slow),
        pytest.param("mistral", {}, "--tensor-parallel 2", marks=pytest.mark.slow),
        pytest.param("gpt_neox", {}, "--tensor-parallel 2", marks=pytest.mark.slow),
        pytest.param("gpt2", {}, "", marks=pytest.mark.slow),
        pytest.param("mixtral", {}, "", marks=pytest.mark.slow),
        pytest.param("mixtral", {}, "--expert-parallel 2", marks=pytest.mark.slow),
    ],
)
def test_model_of_a_folder_matches_one_process(runs: Runs, kind: str, more: dict, arguments: str) -> None:
    words = ["--model", str(folder_of(runs, kind, **more)), *EXACT]
    plain = plain_losses_of(runs, [*SHORT, *words])
    run = runs.of(4, " ".join([*words, arguments]), base=SHORT)
    assert plain[20] < plain[1] - 0.2
    assert largest_difference(run, plain) < 1e-9


def logits_of_shards(words: list[str], place: Path) -> int:
    """Trains, and writes the logits that the trained shards give for some tokens."""
    kept = []
    conclude = training.Trainer._save_folder

    @torch.no_grad()
    def keep_logits(trainer: training.Trainer) -> None:
        conclude(trainer)
        tokens = torch.arange(200).reshape(2, 100)
        kept.append(trainer.model(input_ids=tokens, use_cache=False).logits)

    training.Trainer._save_folder = keep_logits
    status = entry.main(words)
    torch.save(kept[0].clone(), place)
    return status


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "more", "arguments"),
    [
        ("llama", {}, "--tensor-parallel 2"),
        ("llama", {"tie_word_embeddings": True}, "--strategy hybrid_shard"),
        ("llama", {}, "--fsdp1"),
        ("gpt_neox", {}, "--activation-checkpointing"),
        ("mixtral", {}, ""),
        ("mixtral", {}, "--expert-parallel 2"),
    ],
)
def test_written_folder_is_read_by_transformers_with_the_same_logits(
    runs: Runs, kind: str, more: dict, arguments: str
) -> None:
    folder, name = folder_of(runs, kind, **more), f"hf-{kind}-{'-'.join(more)}{arguments}".replace(" ", "")
    words = [*SHORT, "--model", str(folder), "--lr", "1e-3", "--steps", "50", "--save-hf", "--name", name]
    words += ["--runs", str(runs.folder), "--backend", BACKEND, *arguments.split()]
    place = runs.folder / f"{name}.logits"
    on_ranks(4, runs.folder / f"{name}.log", lambda: logits_of_shards(words, place))

    def compare() -> int:
        torch.set_num_threads(1)
        written = runs.folder / name / "hf"
        model = AutoModelForCausalLM.from_pretrained(written)
        expected = torch.load(place)
        with torch.no_grad():
            logits = model(input_ids=torch.arange(200).reshape(2, 100)).logits
            first = AutoModelForCausalLM.from_pretrained(folder)(
                input_ids=torch.arange(200).reshape(2, 100)
            ).logits
        apart = ((logits - expected).abs().max() / expected.abs().max()).item()
        print("relative difference", apart, "moved", (first - expected).abs().max().item())
        assert model.dtype == torch.float32 and apart < 1e-6
        assert (first - expected).abs().max() > 0.1
        text = "def f(x):\n    return 'é'"
        ours, theirs = AutoTokenizer.from_pretrained(written), AutoTokenizer.from_pretrained(folder)
        assert ours(text).input_ids == theirs(text).input_ids
        ignored = ("dtype", "transformers_version", "architectures")
        ours, theirs = (config_of(place, ignored) for place in (written, folder))
        assert ours == theirs
        return 0

    on_ranks(1, runs.folder / f"{name}.compared.log", compare)


def config_of(folder: Path, ignored: tuple[str, ...]) -> dict:
    config = json.loads((folder / "config.json").read_text())
    return {key: value for key, value in config.items() if key not in ignored}


@pytest.mark.parametrize("change", ["no weights", pytest.param("another width", marks=pytest.mark.slow)])
def test_folder_whose_weights_do_not_fit_is_refused(runs: Runs, tmp_path: Path, change: str) -> None:
    whole = folder_of(runs, "llama")
    for file in whole.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    if change == "no weights":
        (tmp_path / "model.safetensors").unlink()
    else:
        config = json.loads((whole / "config.json").read_text()) | {"intermediate_size": 192}
        (tmp_path / "config.json").write_text(json.dumps(config))
    log = runs.folder / f"{change}.log"
    words = [*SHORT, "--model", str(tmp_path), "--runs", str(tmp_path / "runs"), "--backend", BACKEND]
    on_ranks(2, log, lambda: 0 if entry.main(words) == 2 else 1)
    assert log.read_text().count("./dev train: --model") == 1


@pytest.mark.slow
@pytest.mark.parametrize(("horizon", "more"), [(1, []), (2, []), (2, ["--fsdp1"])])
def test_offloaded_inputs_change_neither_losses_nor_what_is_written(
    runs: Runs, horizon: int, more: list[str]
) -> None:
    words = ["--model", str(folder_of(runs, "llama")), *EXACT, *more]
    words += ["--activation-checkpointing", "--save-hf"]
    near = runs.of(2, " ".join(words), base=SHORT)
    far = runs.of(2, " ".join([*words, "--offload-activations", str(horizon)]), base=SHORT)
    assert far.losses == near.losses
    assert far.of_steps("gradient_norm") == near.of_steps("gradient_norm")
    indices = [(run.folder / "hf" / "model.safetensors.index.json").read_text() for run in (near, far)]
    assert indices[0] == indices[1]
    settings = json.loads((far.folder / "config.json").read_text())
    layers, width, itemsize = 2, 64, 8
    inputs = layers * settings["global_batch"] // 2 * settings["seq_len"] * width * itemsize
    for line in map(json.loads, (far.folder / "metrics.jsonl").read_text().splitlines()):
        if "loss" in line:
            offloading = line["offloading"]
            assert 1 <= offloading["most_layers_near"] <= horizon
            assert (offloading["layers"], offloading["bytes_offloaded"]) == (layers, inputs)
