"""The flags: llama-recipes' defaults, how they are reached, and what is refused by one line."""

import dataclasses
from pathlib import Path

import pytest

from trainer.finetune import __main__ as entry
from trainer.finetune.command_line import describe, parse
from trainer.finetune.flags import AlpacaFlags, FlagError, FsdpConfig, LoraFlags, TrainConfig

NEEDED = ["--model_name", "somewhere", "--output_dir", "out"]
OURS = {"precision", "device", "backend", "save_hf", "save_every", "auto_resume"}
PLACES = {"model_name", "output_dir", "dist_checkpoint_root_folder", "profiler_dir"}


@pytest.fixture(autouse=True)
def two_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable, value in {"RANK": "0", "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}.items():
        monkeypatch.setenv(variable, value)


def refusal(*words: str) -> str:
    with pytest.raises(FlagError) as caught:
        parse([*NEEDED, "--enable_fsdp", *words])
    return str(caught.value)


def test_defaults_are_those_of_llama_cookbook(cookbook: None) -> None:
    from llama_cookbook.configs import fsdp_config, lora_config, train_config

    theirs = vars(train_config()) | {"dataset": train_config.dataset}
    ours = dataclasses.asdict(TrainConfig())
    assert set(ours) - set(theirs) == OURS and set(theirs) <= set(ours)
    assert {key: ours[key] for key in theirs if key not in PLACES} == {
        key: value for key, value in theirs.items() if key not in PLACES
    }
    names = {key: getattr(value, "name", value) for key, value in vars(fsdp_config()).items()}
    assert dataclasses.asdict(FsdpConfig()) == names
    ours = dataclasses.asdict(LoraFlags())
    assert {key: getattr(lora_config(), key) for key in ours} == ours


def test_a_flag_of_several_configurations_reaches_all_and_a_dotted_one_reaches_its_own() -> None:
    settings = parse(
        [*NEEDED, "--enable_fsdp", "--mixed_precision", "False", "--fsdp_config.optimizer", "SGD", "--r=4"]
    )
    assert (settings.train.mixed_precision, settings.fsdp.mixed_precision) == (False, False)
    assert (settings.fsdp.optimizer, settings.lora.r) == ("SGD", 4)
    settings = parse([*NEEDED, "--enable_fsdp", "--fsdp_config.use_fp16"])
    assert (settings.train.use_fp16, settings.fsdp.use_fp16) == (False, True)


def test_values_are_taken_as_fire_writes_them() -> None:
    words = [
        "--nosave_hf",
        "--target_modules",
        "[q_proj,k_proj]",
        "--lr=1",
        "--dataset",
        "alpaca_dataset",
        "--data_path=7",
    ]
    settings = parse([*NEEDED, "--enable_fsdp", *words, "--sharding_strategy", "ShardingStrategy.NO_SHARD"])
    assert settings.train.save_hf is False and settings.train.lr == 1.0
    assert settings.lora.target_modules == ["q_proj", "k_proj"]
    assert isinstance(settings.dataset, AlpacaFlags) and settings.dataset.data_path == "7"
    assert settings.shards == 1


def test_the_root_of_checkpoints_is_output_dir_unless_it_is_given() -> None:
    settings = parse([*NEEDED, "--enable_fsdp"])
    assert settings.train.dist_checkpoint_root_folder == "out"
    settings = parse(["--model_name", "m", "--enable_fsdp", "--dist_checkpoint_root_folder", "root"])
    assert settings.train.output_dir == "root"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--num_epoch 3", "--num_epoch is unknown; the nearest flag is --num_epochs"),
        ("--fsdp_config.hdsp", "--fsdp_config.hdsp is unknown; the nearest flag is --fsdp_config.hsdp"),
        (
            "--data_path x",
            "--data_path belongs to alpaca_dataset and custom_dataset, but --dataset is samsum_dataset",
        ),
        ("--num_epochs many", "--num_epochs many: it takes a whole number"),
        ("--lr None", "--lr None: it takes a number"),
        ("--use_peft 1", "--use_peft 1: it takes True or False"),
        ("--num_epochs 0", "--num_epochs 0: it takes a number of at least 1"),
        ("--quantization 4bit", "--quantization is not served"),
        ("--use_wandb", "--use_wandb is not served"),
        ("--use_profiler", "--use_profiler is not served"),
        ("--flop_counter", "--flop_counter is not served"),
        ("--freeze_LLM_only", "--freeze_LLM_only is not served: vision models"),
        ("--use_peft --peft_method llama_adapter", "--peft_method llama_adapter is not served: choose lora"),
        ("--use_peft --peft_method prefix", "--peft_method prefix is not served: choose lora"),
        (
            "--dataset llamaguard_toxicchat_dataset",
            "--dataset llamaguard_toxicchat_dataset is not served: choose one of",
        ),
        ("--batching_strategy sorting", "--batching_strategy sorting: choose packing or padding"),
        ("--optimizer Adam", "--optimizer Adam: choose AdamW or anyprecision or SGD"),
        (
            "--checkpoint_type LOCAL_STATE_DICT",
            "--checkpoint_type LOCAL_STATE_DICT: choose SHARDED_STATE_DICT or",
        ),
        ("--hsdp --sharding_group_size 1", "--hsdp needs --sharding_strategy HYBRID_SHARD"),
        ("--hsdp --sharding_strategy HYBRID_SHARD --sharding_group_size 3", "choose a divisor of 2"),
        ("--from_peft_checkpoint x", "--from_peft_checkpoint needs --use_peft"),
        ("--use_peft --from_peft_checkpoint x", "no adapter_config.json there"),
        ("--use_peft --freeze_layers", "--use_peft trains the adapter alone already"),
        ("--lr 1 somewhere", "somewhere is not a flag"),
    ],
)
def test_what_cannot_be_followed_is_refused_by_a_sentence(words: str, said: str) -> None:
    refused = refusal(*words.split())
    assert said in refused and "\n" not in refused


def test_ranks_without_enable_fsdp_and_enable_fsdp_without_ranks_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(FlagError, match="torchrun started 2 ranks, which need --enable_fsdp"):
        parse(NEEDED)
    for variable in ("RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"):
        monkeypatch.delenv(variable)
    with pytest.raises(FlagError, match="--enable_fsdp needs the ranks of torchrun"):
        parse([*NEEDED, "--enable_fsdp"])


@pytest.mark.parametrize("words", ["--save_every 5", "--auto_resume"])
def test_one_process_is_not_promised_to_go_on(words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"):
        monkeypatch.delenv(variable)
    flag = words.split()[0]
    with pytest.raises(FlagError, match=f"{flag} needs --enable_fsdp: give it, under torchrun"):
        parse([*NEEDED, *words.split()])


def test_a_refusal_is_one_line_and_status_two(capfd: pytest.CaptureFixture, tmp_path: Path) -> None:
    assert entry.main([*NEEDED, "--enable_fsdp", "--gama", "0.5"]) == 2
    assert capfd.readouterr().err == "finetuning: --gama is unknown; the nearest flag is --gamma\n"


def test_help_names_every_flag() -> None:
    described = describe()
    assert "--gradient_accumulation_steps 1" in described and "--lora_dropout 0.05" in described
