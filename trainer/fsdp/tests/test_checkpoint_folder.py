"""A Llama that lies in a Hugging Face folder is trained on with the tokenizer beside it."""

from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from trainer.fsdp.tests.runs import SHORT, TEXT, Runs, on_ranks


def write_llama(folder: Path) -> int:
    """A small Llama and a tokenizer of 300 byte pairs, as save_pretrained leaves them."""
    pairs = Tokenizer(models.BPE())
    pairs.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    pairs.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    pairs.train([str(TEXT / "message.py")], trainers.BpeTrainer(vocab_size=300, initial_alphabet=alphabet))
    PreTrainedTokenizerFast(tokenizer_object=pairs).save_pretrained(folder)
    shape = LlamaConfig(
        vocab_size=300, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4
    )
    LlamaForCausalLM(shape).save_pretrained(folder)
    return 0


def test_llama_from_a_folder_learns(runs: Runs) -> None:
    folder = runs.folder / "llama"
    # In a process of its own: the tokenizer starts threads, which a later fork would not have.
    on_ranks(1, runs.folder / "llama.log", lambda: write_llama(folder))
    run = runs.of(2, f"--model {folder} --lr 3e-3 --sample-tokens 4", base=SHORT)
    assert run.summary["parameters"] < 150_000
    assert run.calls_per_step("all_gather") == 5
    assert run.summary["last_loss"] < run.summary["first_loss"] - 0.5
