"""Turns the command line into settings, and refuses what cannot work before anything is started."""

import argparse
import difflib
import importlib.util
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from trainer.fsdp.presets import CHECKPOINT_FOLDER, PRESETS
from trainer.fsdp.smp_config import SmpConfigError, package_is_missing, read_arguments

PRECISIONS = ("fp32", "bf16", "fp16", "pure_bf16", "fp64")
OPTIMIZERS = ("adamw", "sgd")
WEIGHT_DECAY = {"adamw": 0.1, "sgd": 0.0}
STRATEGIES = ("full_shard", "shard_grad_op", "hybrid_shard", "no_shard")
EXPERT_PARALLEL = 2
PROGRAM = "./dev train"


class SettingsError(Exception):
    """A setting, or a pair of settings, that cannot work; its text says which and what to try."""


@dataclass(frozen=True)
class Settings:
    """Everything a run depends on; the same on every rank."""

    model: str
    layers: int | None
    hidden: int | None
    strategy: str
    shard_degree: int
    fsdp1: bool
    smp_config: Path | None
    tensor_parallel: int
    expert_parallel: int
    arena: bool
    backend: str
    device: str
    precision: str
    activation_checkpointing: bool
    selective_checkpointing: int | None
    offload_activations: int | None
    compile: bool
    steps: int
    decay_steps: int
    warmup: int
    lr: float
    clip: float
    optimizer: str
    weight_decay: float
    seed: int
    seq_len: int
    global_batch: int
    grad_accum: int
    data: tuple[str, ...]
    validate_every: int
    save_every: int | None
    save_hf: bool
    resume: str | None
    auto_resume: bool
    name: str | None
    runs: Path
    sample_tokens: int
    tensorboard: bool
    dry_run: bool
    ranks: int

    @property
    def micro_batch(self) -> int:
        """Sequences in one forward and backward pass of one rank."""
        return self.global_batch // (self.data_ranks * self.grad_accum)

    @property
    def data_ranks(self) -> int:
        """Groups of ranks that train on the same sequences: one per --tensor-parallel ranks."""
        return self.ranks // self.tensor_parallel

    @property
    def checkpointed_every(self) -> int:
        """One block in so many keeps its input only; 0 means none."""
        return self.selective_checkpointing or int(self.activation_checkpointing)

    @property
    def shards(self) -> int:
        """Ranks among which one copy of the parameters is split."""
        if self.strategy == "no_shard":
            return 1
        return self.shard_degree if self.strategy == "hybrid_shard" else self.data_ranks


def parse(words: list[str]) -> Settings:
    """Settings from the command line, with the preset's values where it is silent."""
    parser = _parser()
    config = parser.parse_known_args(words)[0].smp_config
    if config is not None:
        try:
            parser.set_defaults(**read_arguments(config))
        except SmpConfigError as error:
            raise SettingsError(f"--smp-config {error}") from error
    given = vars(parser.parse_args(words))
    for setting, value in _defaults(given["model"]).items():
        if given[setting] is None:
            given[setting] = value
    if given["decay_steps"] is None:
        given["decay_steps"] = max(given["steps"], _defaults(given["model"])["steps"])
    if given["weight_decay"] is None:
        given["weight_decay"] = WEIGHT_DECAY[given["optimizer"]]
    given["data"] = tuple(given["data"])
    given["ranks"] = _ranks(given["ranks"])
    settings = Settings(**given)
    _refuse_what_cannot_work(settings)
    return settings


class _Parser(argparse.ArgumentParser):
    """A parser whose complaint is one line, with the nearest argument that there is."""

    def error(self, message: str) -> NoReturn:
        unknown = re.match(r"unrecognized arguments: (--[^ =]+)", message)
        known = [name for name in self._option_string_actions if name.startswith("--")]
        near = difflib.get_close_matches(unknown[1], known, n=1, cutoff=0) if unknown else ()
        raise SettingsError(message + "".join(f"; did you mean {name}?" for name in near))


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog=PROGRAM, description="Train a causal model with FSDP.")
    _add_model_arguments(parser.add_argument_group("model and data"))
    _add_sharding_arguments(parser.add_argument_group("sharding"))
    _add_training_arguments(parser.add_argument_group("training"))
    _add_run_arguments(parser.add_argument_group("the run"))
    return parser


def _add_model_arguments(group: Any) -> None:
    group.add_argument(
        "--model",
        "--preset",
        default="tiny",
        metavar="MODEL",
        help=f"{', '.join(PRESETS)}, or a Hugging Face folder of a causal model and its tokenizer (tiny)",
    )
    group.add_argument("--layers", type=_positive, metavar="N", help="blocks, in place of the preset's")
    group.add_argument("--hidden", type=_positive, metavar="N", help="width, in place of the preset's")
    group.add_argument(
        "--data",
        nargs="+",
        default=(),
        metavar="PATH",
        help="text files or folders of them (source text of the Python standard library)",
    )
    group.add_argument("--seq-len", type=_positive, metavar="N", help="tokens of one sequence")


def _add_sharding_arguments(group: Any) -> None:
    group.add_argument("--strategy", choices=STRATEGIES, default="full_shard", help="(full_shard)")
    group.add_argument(
        "--shard-degree", type=_positive, default=2, metavar="N", help="ranks of one hybrid_shard copy (2)"
    )
    group.add_argument(
        "--smp-config", type=Path, metavar="FILE", help="JSON keys of SageMaker's model parallelism v2"
    )
    group.add_argument(
        "--tensor-parallel", type=_positive, default=1, metavar="N", help="ranks that share each tensor (1)"
    )
    group.add_argument(
        "--expert-parallel", type=_positive, default=1, metavar="N", help="ranks that share the experts (1)"
    )
    group.add_argument("--fsdp1", action="store_true", help="the older class, FullyShardedDataParallel")
    group.add_argument(
        "--no-arena",
        dest="arena",
        action="store_false",
        help="communication buffers in torch's own memory, not in what the ranks of a host map",
    )
    group.add_argument("--backend", default="fccl", help="fccl, or gloo to compare (fccl)")
    group.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="ranks may share a GPU (cpu)")
    group.add_argument(
        "--precision", choices=PRECISIONS, default="fp32", help="bf16 and fp16 are mixed with fp32 (fp32)"
    )
    group.add_argument("--activation-checkpointing", action="store_true", help="less memory, more compute")
    group.add_argument(
        "--selective-checkpointing", type=_positive, metavar="N", help="the same for one block in N only"
    )
    group.add_argument(
        "--offload-activations",
        type=_positive,
        metavar="HORIZON",
        help="keep the inputs of checkpointed blocks far away, but for so many",
    )
    group.add_argument("--compile", action="store_true", help="torch.compile for every block")
    group.add_argument("--ranks", type=_positive, metavar="N", help="processes (2)")


def _add_training_arguments(group: Any) -> None:
    group.add_argument("--steps", type=_positive, metavar="N", help="where to stop")
    group.add_argument("--global-batch", type=_positive, metavar="N", help="sequences per step, all ranks")
    group.add_argument("--grad-accum", type=_positive, default=1, metavar="N", help="passes per step (1)")
    group.add_argument("--lr", type=float, metavar="X", help="highest learning rate")
    group.add_argument("--warmup", type=int, metavar="N", help="steps until the highest learning rate")
    group.add_argument(
        "--decay-steps",
        type=_positive,
        metavar="N",
        help="where the cosine ends (the preset's steps, or --steps if that is more)",
    )
    group.add_argument("--clip", type=float, default=1.0, metavar="X", help="highest gradient norm (1.0)")
    group.add_argument("--optimizer", choices=OPTIMIZERS, default="adamw", help="(adamw)")
    group.add_argument("--weight-decay", type=float, metavar="X", help="(0.1 for adamw, 0 for sgd)")
    group.add_argument("--seed", type=int, default=0, metavar="N", help="of weights and batches (0)")


def _add_run_arguments(group: Any) -> None:
    group.add_argument("--name", help="the run's folder under runs/ (one that is free)")
    group.add_argument("--runs", type=Path, default=Path("runs"), metavar="FOLDER", help="(runs)")
    group.add_argument("--validate-every", type=int, default=100, metavar="N", help="0: never (100)")
    group.add_argument(
        "--save-every", type=int, metavar="N", help="save each N steps and at the end; 0: never (at the end)"
    )
    group.add_argument("--save-hf", action="store_true", help="leave hf/, a Hugging Face folder, at the end")
    group.add_argument("--resume", metavar="RUN", help="a run's name, its folder, or one of its checkpoints")
    group.add_argument(
        "--auto-resume",
        action="store_true",
        help="go on in the folder of --name, from its last checkpoint, if it is there already",
    )
    group.add_argument("--sample-tokens", type=int, default=160, metavar="N", help="at the end (160)")
    group.add_argument(
        "--tensorboard", action="store_true", help="leave tensorboard/, which shows the metrics as curves"
    )
    group.add_argument("--dry-run", action="store_true", help="only print what a run would take")


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is not positive")
    return number


def _defaults(model: str) -> dict[str, Any]:
    if model not in PRESETS:
        return CHECKPOINT_FOLDER
    preset = PRESETS[model]
    return {setting: getattr(preset, setting) for setting in CHECKPOINT_FOLDER}


def _ranks(given: int | None) -> int:
    launched = os.environ.get("WORLD_SIZE")
    if launched is None:
        return given or 2
    if given not in (None, int(launched)):
        raise SettingsError(f"--ranks {given}, but torchrun started {launched}: leave --ranks to {PROGRAM}")
    return int(launched)


def _refuse_what_cannot_work(settings: Settings) -> None:
    if settings.tensor_parallel > 1:
        _refuse_tensor_parallel(settings)
    passes = settings.data_ranks * settings.grad_accum
    if settings.global_batch % passes:
        among = (
            f"{settings.ranks} ranks"
            if settings.tensor_parallel == 1
            else f"{settings.data_ranks} groups of --tensor-parallel ranks"
        )
        raise SettingsError(
            f"--global-batch {settings.global_batch} does not divide among {among} times "
            f"--grad-accum {settings.grad_accum}: choose a multiple of {passes}"
        )
    if settings.model not in PRESETS and not (Path(settings.model) / "config.json").is_file():
        raise SettingsError(
            f"--model {settings.model}: neither one of {', '.join(PRESETS)} nor a folder with a config.json"
        )
    if settings.offload_activations:
        _refuse_offloading(settings)
    if settings.expert_parallel > 1:
        _refuse_expert_parallel(settings)
    if settings.auto_resume and settings.name is None:
        raise SettingsError("--auto-resume needs a --name: the folder under --runs in which the run goes on")
    if settings.strategy == "hybrid_shard":
        _refuse_shard_degree(settings)
    if settings.fsdp1 and settings.shards == 1:
        _refuse_what_saves(settings)
    if settings.tensorboard and importlib.util.find_spec("tensorboard") is None:
        raise SettingsError("--tensorboard needs the package tensorboard: pip install tensorboard")


def _refuse_tensor_parallel(settings: Settings) -> None:
    if settings.ranks % settings.tensor_parallel:
        raise SettingsError(
            f"--tensor-parallel {settings.tensor_parallel} does not divide {settings.ranks} ranks: "
            f"choose a divisor"
        )
    if settings.fsdp1:
        raise SettingsError("--tensor-parallel needs FSDP2: leave --fsdp1 out")
    if settings.compile:
        raise SettingsError("--compile with --tensor-parallel has not been tried: leave one of them out")


def _refuse_offloading(settings: Settings) -> None:
    if not settings.checkpointed_every:
        raise SettingsError(
            "--offload-activations keeps the inputs of checkpointed blocks far away: give "
            "--activation-checkpointing or --selective-checkpointing, too"
        )
    if package_is_missing():
        raise SettingsError(
            "--offload-activations needs the package fccl-sagemaker: "
            "pip install --no-build-isolation --no-deps ./sagemaker"
        )


def _refuse_expert_parallel(settings: Settings) -> None:
    degree = settings.expert_parallel
    if degree != EXPERT_PARALLEL:
        raise SettingsError(
            f"--expert-parallel {degree}: only {EXPERT_PARALLEL} is known to train as one process does; "
            f"choose it"
        )
    if settings.ranks % degree:
        raise SettingsError(
            f"--expert-parallel {degree} does not divide {settings.ranks} ranks: take more ranks"
        )
    if (
        settings.tensor_parallel > 1
        or settings.fsdp1
        or settings.strategy not in ("full_shard", "shard_grad_op")
    ):
        raise SettingsError(
            f"--expert-parallel {degree} goes with FSDP2's full_shard and shard_grad_op alone: "
            f"leave --fsdp1, --tensor-parallel and other strategies out"
        )


def _refuse_shard_degree(settings: Settings) -> None:
    if settings.data_ranks % settings.shard_degree:
        whom = "ranks" if settings.tensor_parallel == 1 else "groups of --tensor-parallel ranks"
        raise SettingsError(
            f"--shard-degree {settings.shard_degree} does not divide {settings.data_ranks} {whom}: "
            f"choose a divisor, or --strategy full_shard"
        )
    if settings.fsdp1 and settings.shard_degree == 1:
        raise SettingsError(
            "--fsdp1 --strategy hybrid_shard --shard-degree 1: FullyShardedDataParallel does not average "
            "the gradients then, and says nothing; use --strategy no_shard, or leave --fsdp1 out"
        )


def _refuse_what_saves(settings: Settings) -> None:
    for word, given in (
        ("--save-every", settings.save_every != 0),
        ("--save-hf", settings.save_hf),
        ("--resume", settings.resume),
    ):
        if given:
            raise SettingsError(
                f"{word}: FullyShardedDataParallel gives and takes no checkpoint of what it does not shard; "
                f"leave --fsdp1 out, or train without checkpoints (--save-every 0)"
            )
