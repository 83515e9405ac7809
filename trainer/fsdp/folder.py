"""Fills a sharded causal model from a seed or from a Hugging Face folder, and writes it as such a folder.

No rank holds more than its shards, one block and the root, however the model is sharded.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
import torch.distributed as dist
from safetensors.torch import save_file
from torch import nn
from torch.distributed.checkpoint.state_dict import get_model_state_dict
from torch.distributed.tensor import DTensor
from transformers import AutoConfig, AutoModelForCausalLM, PretrainedConfig, PreTrainedModel
from transformers.conversion_mapping import get_model_conversion_mapping
from transformers.core_model_loading import revert_weight_conversion
from transformers.distributed.sharding_utils import DtensorShardOperation
from transformers.modeling_utils import LoadStateDictConfig
from transformers.utils import logging as transformers_logging

from trainer.fsdp.blocks import modules_by_group, names_by_group

WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"
Tensors = dict[str, torch.Tensor]


class FolderError(Exception):
    """A folder that does not hold the model that it should; its text says what is missing."""


class Saves(Protocol):
    """A tokenizer, as far as writing a folder goes."""

    def save_pretrained(self, folder: Path) -> Any: ...


def read_config(folder: str | Path) -> PretrainedConfig:
    """The configuration of the causal model that lies in a folder."""
    return AutoConfig.from_pretrained(folder, local_files_only=True)


def model_on_meta(config: PretrainedConfig, dtype: torch.dtype, **options: Any) -> PreTrainedModel:
    """The model's modules and shapes, without memory; `options` go to `AutoModelForCausalLM.from_config`."""
    with torch.device("meta"):
        return AutoModelForCausalLM.from_config(config, dtype=dtype, **options)


def fill_from_seed(model: nn.Module, seed: int, device: torch.device) -> None:
    """Gives a model on meta the weights that follow from `seed`, block by block."""
    model.to_empty(device=device)
    targets = {name: module for group in modules_by_group(model) for name, module in group.items()}
    for group in groups_from_seed(model.config, seed):
        for name, module in group.items():
            copy_tensors(module, targets[name])
    model.tie_weights()


def groups_from_seed(config: PretrainedConfig, seed: int) -> Iterator[dict[str, nn.Module]]:
    """Modules by name, the root's and then each block's, with weights until the next ones are asked for.

    They are drawn in float32 on the processor, so that no number of ranks, dtype or device changes them.
    """
    model = model_on_meta(config, torch.float32)
    for index, group in enumerate(modules_by_group(model)):
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            torch.manual_seed(int(np.random.SeedSequence((seed, index)).generate_state(1)[0]))
            for module in group.values():
                module.to_empty(device="cpu", recurse=False)
                model._init_weights(module)
        yield group
        for module in group.values():
            module.to_empty(device="meta", recurse=False)


@torch.no_grad()
def copy_tensors(source: nn.Module, target: nn.Module) -> None:
    """Copies a module's own parameters and buffers to a module that has memory for them or for its shards."""
    for name, tensor in source.named_parameters(recurse=False):
        whole, parameter = _whole(tensor), target.get_parameter(name)
        if isinstance(parameter, DTensor):
            parameter.to_local().copy_(DtensorShardOperation(parameter).shard_tensor(whole))
        else:
            parameter.copy_(whole)
    for name, tensor in source.named_buffers(recurse=False):
        target.get_buffer(name).copy_(tensor)


def fill_from_folder(
    model: PreTrainedModel,
    folder: str | Path,
    device: torch.device,
    renamed: dict[str, str] | None = None,
    may_lack: Callable[[str], bool] = lambda name: False,
) -> None:
    """Gives a model on meta the weights of a folder; each rank reads its own part of every tensor.

    `renamed` maps regular expressions of the folder's names to the model's names. Parameters that the folder
    lacks are drawn as the model draws them where `may_lack` says that they may be lacking; else FolderError.
    """
    transformers_logging.disable_progress_bar()
    files = weight_files(Path(folder))
    # Transformers looks conversions up by the name of the class, which FSDP2 has changed.
    unsharded = model_on_meta(model.config, model.dtype)
    reading = LoadStateDictConfig(
        pretrained_model_name_or_path=str(folder),
        device_map={"": device},
        dtype=model.dtype,
        weight_mapping=get_model_conversion_mapping(unsharded, renamed),
    )
    found, _ = model._load_pretrained_model(model, None, [str(file) for file in files], reading)
    tied = model.all_tied_weights_keys
    lacking = sorted(name for name in found.missing_keys if name not in tied and not may_lack(name))
    if lacking or found.mismatched_keys:
        wrong = [*lacking, *(f"{name} of shape {tuple(there)}" for name, there, _ in found.mismatched_keys)]
        raise FolderError(
            f"{folder}: its weights do not fill the {type(unsharded).__name__} of its config.json; lacking "
            f"or of another shape: {', '.join(wrong[:4])}{' and more' if len(wrong) > 4 else ''}"
        )
    model._finalize_model_loading(model, reading, found)
    if renamed:
        # A folder is written with the model's own names, so the caller's must not be turned around then.
        model._weight_conversions = get_model_conversion_mapping(unsharded)


def weight_files(folder: Path) -> list[Path]:
    """The files of safetensors in a folder that hold the model's weights."""
    if (folder / INDEX).is_file():
        named = json.loads((folder / INDEX).read_text())["weight_map"].values()
        files = [folder / name for name in sorted(set(named))]
    else:
        files = [folder / WEIGHTS]
    absent = [file.name for file in files if not file.is_file()]
    if absent:
        raise FolderError(
            f"{folder}: no {absent[0]} there; the weights must be safetensors, as save_pretrained writes them"
        )
    return files


def write_folder(
    model: nn.Module,
    folder: Path,
    tokenizer: Saves | None = None,
    change: Callable[[Tensors], Tensors] = lambda tensors: tensors,
) -> None:
    """Writes the model as `AutoModelForCausalLM.from_pretrained` reads it; every rank calls it.

    Every rank gathers one group after the other, and rank 0 writes each to a file of its own. `change` may
    rename, merge or leave out tensors of a group before they are written; it is called on rank 0 alone.
    """
    plain = next(module for module in model.modules() if isinstance(module, PreTrainedModel))
    state = get_model_state_dict(model)
    tied = getattr(plain, "all_tied_weights_keys", None) or {}
    groups = list(names_by_group(model, [name for name in state if name not in tied]))
    places: dict[str, str] = {}
    size = 0
    for index, names in enumerate(groups, start=1):
        tensors = {name: _whole(state[name]) for name in names}
        if _writes():
            folder.mkdir(parents=True, exist_ok=True)
            tensors = revert_weight_conversion(plain, change(tensors))
            file = f"model-{index:05d}-of-{len(groups):05d}.safetensors"
            save_file(
                {name: tensor.contiguous() for name, tensor in tensors.items()},
                folder / file,
                {"format": "pt"},
            )
            places |= dict.fromkeys(tensors, file)
            size += sum(tensor.nbytes for tensor in tensors.values())
    if _writes():
        index = {"metadata": {"total_size": size}, "weight_map": places}
        (folder / INDEX).write_text(json.dumps(index, indent=2, sort_keys=True) + "\n")
        _write_description(plain, folder, tokenizer)
    if dist.is_initialized():
        dist.barrier()


def _writes() -> bool:
    return not dist.is_initialized() or dist.get_rank() == 0


def _write_description(model: PreTrainedModel, folder: Path, tokenizer: Saves | None) -> None:
    if tokenizer is not None:
        tokenizer.save_pretrained(folder)
    model.config.architectures = [type(model).__name__.removeprefix("FSDP")]
    model.config.dtype = next(model.parameters()).dtype
    model.config.save_pretrained(folder)
    if model.can_generate():
        model.generation_config.save_pretrained(folder)


def _whole(tensor: torch.Tensor) -> torch.Tensor:
    whole = tensor.full_tensor() if isinstance(tensor, DTensor) else tensor
    return whole.detach().cpu()
