"""Turns the command line into settings, and refuses what cannot work before torch is loaded."""

import dataclasses
import difflib
import os
import types
import typing
from pathlib import Path
from typing import Any

import fire

from trainer.finetune.flags import DATASETS, FlagError, FsdpConfig, LoraFlags, Settings, TrainConfig

CONFIGS = {"train_config": TrainConfig, "fsdp_config": FsdpConfig, "lora_config": LoraFlags, **DATASETS}
PRECISIONS = ("fp32", "bf16", "fp16", "pure_bf16", "fp64")
STRATEGIES = ("FULL_SHARD", "SHARD_GRAD_OP", "HYBRID_SHARD", "NO_SHARD")
CHECKPOINTS = ("SHARDED_STATE_DICT", "FULL_STATE_DICT")
OPTIMIZERS = ("AdamW", "anyprecision", "SGD")
CHOICES: dict[tuple[str, str], tuple[Any, ...]] = {
    ("train", "batching_strategy"): ("packing", "padding"),
    ("train", "dataset"): tuple(DATASETS),
    ("train", "precision"): (None, *PRECISIONS),
    ("train", "device"): (None, "cpu", "cuda"),
    ("fsdp", "sharding_strategy"): STRATEGIES,
    ("fsdp", "checkpoint_type"): CHECKPOINTS,
    ("fsdp", "optimizer"): OPTIMIZERS,
    ("lora", "bias"): ("none",),
    ("lora", "task_type"): ("CAUSAL_LM",),
    ("lora", "inference_mode"): (False,),
}
AT_LEAST_ONE = (
    "batch_size_training",
    "val_batch_size",
    "context_length",
    "gradient_accumulation_steps",
    "num_epochs",
)
NOT_SERVED = {
    "quantization": "weights are kept in fp32, or in bf16 by --pure_bf16",
    "use_wandb": "metrics.jsonl has every step",
    "use_profiler": "FCCL_METRICS_PORT serves calls, bytes and times of the collectives",
    "flop_counter": "summary.json has tokens_per_second",
    "freeze_LLM_only": "vision models are not trained here",
}


def parse(words: list[str]) -> Settings:
    """Settings from the command line; FlagError where it cannot be followed."""
    given = _given(words)
    dataset = given.get("dataset", given.get("train_config.dataset", TrainConfig.dataset))
    if dataset not in DATASETS:
        raise FlagError(f"--dataset {dataset} is not served: choose one of {', '.join(DATASETS)}")
    settings = Settings(
        TrainConfig(),
        FsdpConfig(),
        LoraFlags(),
        DATASETS[dataset](),
        _number("WORLD_SIZE"),
        _number("LOCAL_WORLD_SIZE"),
    )
    configs = {
        "train_config": settings.train,
        "fsdp_config": settings.fsdp,
        "lora_config": settings.lora,
        dataset: settings.dataset,
    }
    for flag, value in given.items():
        _assign(configs, flag, value)
    _complete(settings)
    _refuse_what_cannot_work(settings)
    return settings


def describe() -> str:
    """All flags with their defaults, a line each."""
    lines = ["Flags, each with its default; --CONFIG.FLAG reaches the flag of one of several configurations:"]
    for config, kind in CONFIGS.items():
        lines.append(f"{config}:")
        default = kind()
        lines += [f"  --{field.name} {getattr(default, field.name)!r}" for field in dataclasses.fields(kind)]
    return "\n".join(lines)


def _given(words: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}

    def collect(*others: Any, **flags: Any) -> None:
        if others:
            raise FlagError(f"{others[0]} is not a flag: write --FLAG VALUE or --FLAG=VALUE")
        found.update(flags)

    fire.Fire(collect, command=words, name="finetuning")
    return found


def _assign(configs: dict[str, Any], flag: str, value: Any) -> None:
    config, _, name = flag.rpartition(".")
    holders = [each for key, each in configs.items() if config in ("", key) and _has(type(each), name)]
    if not holders:
        raise FlagError(_unknown(flag, config, name, configs))
    for holder in holders:
        setattr(holder, name, _converted(flag, value, typing.get_type_hints(type(holder))[name]))


def _has(config: type, name: str) -> bool:
    return any(field.name == name for field in dataclasses.fields(config))


def _unknown(flag: str, config: str, name: str, configs: dict[str, Any]) -> str:
    elsewhere = [key for key, kind in DATASETS.items() if config in ("", key) and _has(kind, name)]
    if elsewhere:
        chosen = next(key for key in configs if key in DATASETS)
        return (
            f"--{flag} belongs to {' and '.join(elsewhere)}, but --dataset is {chosen}: "
            f"change --dataset, or leave it out"
        )
    flags = {field.name for kind in CONFIGS.values() for field in dataclasses.fields(kind)}
    if config:
        flags = {f"{key}.{field.name}" for key, kind in CONFIGS.items() for field in dataclasses.fields(kind)}
    nearest = difflib.get_close_matches(flag, sorted(flags), n=1, cutoff=0.0)
    return f"--{flag} is unknown; the nearest flag is --{nearest[0]}"


def _converted(flag: str, value: Any, hint: Any) -> Any:
    kinds = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    if value is None and types.NoneType in kinds:
        return None
    kind = kinds[0]
    if kind is bool and str(value).lower() in ("true", "false"):
        return str(value).lower() == "true"
    if kind is int and type(value) is int:
        return value
    if kind is float and type(value) in (int, float):
        return float(value)
    if kind is str and value is not None and not isinstance(value, bool):
        return str(value)
    if typing.get_origin(kind) is list and isinstance(value, str | list | tuple):
        return value.split(",") if isinstance(value, str) else [str(each) for each in value]
    wanted = {bool: "True or False", int: "a whole number", float: "a number", str: "a text"}.get(
        kind, "a list"
    )
    raise FlagError(f"--{flag} {value}: it takes {wanted}")


def _number(variable: str) -> int:
    return int(os.environ.get(variable, "1"))


def _complete(settings: Settings) -> None:
    train, fsdp = settings.train, settings.fsdp
    fsdp.sharding_strategy = fsdp.sharding_strategy.removeprefix("ShardingStrategy.")
    fsdp.checkpoint_type = fsdp.checkpoint_type.removeprefix("StateDictType.")
    train.output_dir = train.output_dir or train.dist_checkpoint_root_folder
    train.dist_checkpoint_root_folder = train.dist_checkpoint_root_folder or train.output_dir
    if fsdp.hsdp and fsdp.sharding_group_size and not fsdp.replica_group_size:
        fsdp.replica_group_size = settings.ranks // fsdp.sharding_group_size


def _refuse_what_cannot_work(settings: Settings) -> None:
    train = settings.train
    for flag, instead in NOT_SERVED.items():
        if getattr(train, flag):
            raise FlagError(f"--{flag} is not served: {instead}; leave it out")
    if train.peft_method != "lora":
        raise FlagError(f"--peft_method {train.peft_method} is not served: choose lora")
    for (config, name), allowed in CHOICES.items():
        value = getattr(getattr(settings, config), name)
        if value not in allowed:
            raise FlagError(
                f"--{name} {value}: choose {' or '.join(str(each) for each in allowed if each is not None)}"
            )
    for name in AT_LEAST_ONE:
        if getattr(train, name) < 1:
            raise FlagError(f"--{name} {getattr(train, name)}: it takes a number of at least 1")
    for flag in ("model_name", "output_dir"):
        if not getattr(train, flag):
            raise FlagError(f"--{flag} is not given: it names a folder")
    _refuse_ranks(settings)
    if train.from_peft_checkpoint:
        _refuse_adapter(train)
    if train.use_peft and train.freeze_layers:
        raise FlagError("--freeze_layers: --use_peft trains the adapter alone already; leave one of them out")


def _refuse_ranks(settings: Settings) -> None:
    fsdp, ranks = settings.fsdp, settings.ranks
    if not settings.train.enable_fsdp:
        if ranks > 1:
            raise FlagError(
                f"torchrun started {ranks} ranks, which need --enable_fsdp: give it, or start one process"
            )
        for flag in ("save_every", "auto_resume"):
            if getattr(settings.train, flag):
                raise FlagError(f"--{flag} needs --enable_fsdp: give it, under torchrun --nproc_per_node 1")
        return
    if "RANK" not in os.environ:
        raise FlagError(
            "--enable_fsdp needs the ranks of torchrun: start with torchrun --nproc_per_node N, "
            "or leave it out"
        )
    if fsdp.hsdp:
        if fsdp.sharding_strategy != "HYBRID_SHARD":
            raise FlagError(f"--hsdp needs --sharding_strategy HYBRID_SHARD, not {fsdp.sharding_strategy}")
        if fsdp.sharding_group_size < 1 or fsdp.sharding_group_size * fsdp.replica_group_size != ranks:
            raise FlagError(
                f"--sharding_group_size {fsdp.sharding_group_size} times "
                f"--replica_group_size {fsdp.replica_group_size} is not the {ranks} "
                f"ranks that torchrun started: choose a divisor of {ranks}"
            )
    elif ranks % settings.shards:
        raise FlagError(
            f"HYBRID_SHARD: {ranks} ranks do not divide into hosts of {settings.shards}; "
            f"give --hsdp and its groups"
        )


def _refuse_adapter(train: TrainConfig) -> None:
    if not train.use_peft:
        raise FlagError("--from_peft_checkpoint needs --use_peft: give both")
    if not (Path(train.from_peft_checkpoint) / "adapter_config.json").is_file():
        raise FlagError(f"--from_peft_checkpoint {train.from_peft_checkpoint}: no adapter_config.json there")
