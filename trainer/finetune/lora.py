"""Puts an adapter of peft into a sharded model, fills it, saves it, and merges it into the weights."""

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from peft import LoraConfig, PeftConfig, inject_adapter_in_model
from peft.tuners.lora import LoraLayer
from peft.utils import load_peft_weights
from safetensors.torch import save_file
from torch import nn
from torch.distributed.tensor import DTensor
from transformers import PreTrainedModel

from trainer.finetune.flags import FlagError, Settings
from trainer.fsdp.blocks import plain_name
from trainer.fsdp.folder import copy_tensors

ADAPTER, WEIGHTS = "default", "adapter_model.safetensors"
PEFTS_PREFIX = "base_model.model."
MATRIX = re.compile(rf"\.lora_[AB]\.{ADAPTER}\.weight$")
"""What an adapter of linear layers consists of."""

Tensors = dict[str, torch.Tensor]


def adapter_config(settings: Settings) -> LoraConfig:
    """The adapter that the flags describe, or the one that the run goes on with."""
    if settings.train.from_peft_checkpoint:
        config = PeftConfig.from_pretrained(settings.train.from_peft_checkpoint)
        if not isinstance(config, LoraConfig):
            raise FlagError(
                f"--from_peft_checkpoint {settings.train.from_peft_checkpoint} holds an adapter of type "
                f"{config.peft_type.value}, and only LoRA is served"
            )
        config.inference_mode = False
        return config
    flags = settings.lora
    modules = flags.target_modules
    return LoraConfig(
        r=flags.r,
        lora_alpha=flags.lora_alpha,
        target_modules="all-linear" if modules == ["all-linear"] else modules,
        lora_dropout=flags.lora_dropout,
        bias="none",
        task_type=flags.task_type,
        base_model_name_or_path=settings.train.model_name,
    )


def inject(model: PreTrainedModel, config: LoraConfig) -> None:
    """Puts the adapter into a model on meta; from here on it alone is trained."""
    try:
        with torch.device("meta"):
            inject_adapter_in_model(config, model, ADAPTER)
    except ValueError as error:
        raise FlagError(f"--target_modules {config.target_modules}: {str(error).splitlines()[0]}") from error
    trained = [name for name, parameter in model.named_parameters() if parameter.requires_grad]
    if others := [name for name in trained if not MATRIX.search(name)]:
        raise FlagError(
            f"--use_peft trains matrices of linear layers, and this adapter has {others[0]}: "
            f"choose other --target_modules, or another --from_peft_checkpoint"
        )
    for layer in _layers(model).values():
        for matrix in (layer.lora_A[ADAPTER], layer.lora_B[ADAPTER]):
            matrix.to(model.dtype)


def renamed_weights(model: nn.Module) -> dict[str, str]:
    """How a folder's names become those of a model with an adapter, for fill_from_folder."""
    leaves = sorted({name.rpartition(".")[2] for name in _layers(model)})
    return {rf"({'|'.join(leaves)})\.{kind}": rf"\1.base_layer.{kind}" for kind in ("weight", "bias")}


def is_adapter(name: str) -> bool:
    """Tells if a parameter of this name belongs to the adapter."""
    return ".lora_" in name


def fill_adapter(model: nn.Module, seed: int, folder: str) -> None:
    """Gives the adapter its first values: those of a folder, or what peft begins with."""
    read = load_peft_weights(folder, device="cpu") if folder else {}
    for index, (name, layer) in enumerate(sorted(_layers(model).items())):
        for letter, matrices in (("A", layer.lora_A), ("B", layer.lora_B)):
            matrix = matrices[ADAPTER]
            with torch.random.fork_rng(devices=[]), torch.no_grad():
                torch.manual_seed(seed * 100_003 + index)
                first = nn.Linear(matrix.in_features, matrix.out_features, bias=False)
                if letter == "B":
                    first.weight.zero_()
                if folder:
                    there = _found(read, f"{PEFTS_PREFIX}{name}.lora_{letter}.weight", folder)
                    first.to(matrix.weight.dtype).weight.copy_(there)
            copy_tensors(first, matrix)


def save_adapter(model: nn.Module, config: LoraConfig, folder: Path, writes: bool) -> None:
    """Leaves a folder that PeftModel.from_pretrained reads; every rank calls it, and one writes."""
    tensors: Tensors = {}
    for name, parameter in model.named_parameters():
        if is_adapter(name):
            whole = parameter.full_tensor() if isinstance(parameter, DTensor) else parameter
            name_in_peft = f"{PEFTS_PREFIX}{plain_name(name)}".replace(f".{ADAPTER}.", ".")
            tensors[name_in_peft] = whole.detach().cpu().contiguous()
    if writes:
        folder.mkdir(parents=True, exist_ok=True)
        save_file(tensors, folder / WEIGHTS, {"format": "pt"})
        config.save_pretrained(folder)


def merging(model: nn.Module) -> Callable[[Tensors], Tensors]:
    """Adds a group's adapter to the weights that it changes, as write_folder takes it."""
    layers = _layers(model)
    factors = {name: layer.scaling[ADAPTER] for name, layer in layers.items()}
    turned = {name for name, layer in layers.items() if getattr(layer, "fan_in_fan_out", False)}
    return partial(merged, factors=factors, turned=turned)


def merged(tensors: Tensors, factors: dict[str, float], turned: set[str]) -> Tensors:
    """A group's tensors without the adapter; layers that are `turned` have a row for each input."""
    whole: Tensors = {}
    for name, tensor in tensors.items():
        if is_adapter(name):
            continue
        path, inside, leaf = name.partition(".base_layer.")
        if leaf == "weight":
            first, second = (tensors[f"{path}.lora_{letter}.{ADAPTER}.weight"] for letter in "AB")
            product = second @ first * factors[path]
            tensor = tensor + (product.T if path in turned else product)
        whole[f"{path}.{leaf}" if inside else name] = tensor
    return whole


def _layers(model: nn.Module) -> dict[str, LoraLayer]:
    return {
        plain_name(name): module for name, module in model.named_modules() if isinstance(module, LoraLayer)
    }


def _found(read: Tensors, name: str, folder: str) -> torch.Tensor:
    if name not in read:
        raise FlagError(f"--from_peft_checkpoint {folder} lacks {name}: it is an adapter of another model")
    return read[name]
