"""The modules below torch.sagemaker: a table of their names and of what stands behind each."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any

# Module below torch.sagemaker, then name in it: "module of fccl_sagemaker:name".
CONTENTS: dict[str, dict[str, str]] = {
    "checkpoint": {},
    "checkpoint.utils": {
        "SORT_BY_LAST_INT": "checkpoints:SORT_BY_LAST_INT",
        "limit_num_subdirs": "checkpoints:limit_num_subdirs",
    },
    "delayed_param": {"DelayedParamIniter": "delayed:DelayedParamIniter"},
    "distributed": {},
    "distributed.checkpoint": {},
    "distributed.checkpoint.filesystem": {
        "DistributedFileSystemReader": "checkpoints:FileSystemReader",
        "DistributedFileSystemWriter": "checkpoints:FileSystemWriter",
    },
    "distributed.checkpoint.state_dict_loader": {"load": "checkpoints:load"},
    "distributed.checkpoint.state_dict_saver": {
        "async_save": "checkpoints:async_save",
        "maybe_finalize_async_calls": "checkpoints:maybe_finalize_async_calls",
        "save": "checkpoints:save",
    },
    "distributed.fsdp": {},
    "distributed.fsdp.checkpoint": {
        "EXPORT_KEY_IDENTITY": "model_checkpoints:EXPORT_KEY_IDENTITY",
        "EXPORT_KEY_MODEL": "model_checkpoints:EXPORT_KEY_MODEL",
        "EXPORT_KEY_OPTIMIZER": "model_checkpoints:EXPORT_KEY_OPTIMIZER",
        "EXPORT_KEY_SCHEDULER": "model_checkpoints:EXPORT_KEY_SCHEDULER",
        "load_model_checkpoint": "model_checkpoints:load_model_checkpoint",
        "save_model_checkpoint": "model_checkpoints:save_model_checkpoint",
    },
    "distributed.fsdp.fully_sharded_data_parallel": {
        "register_tp_processing_pre_comm_hook": "layers:register_tp_processing_pre_comm_hook",
    },
    "grad_norm": {"clip_grad_norm_": "gradients:clip_grad_norm_"},
    "logger": {"get_logger": "notes:get_logger"},
    "moe": {},
    "moe.moe_config": {"MoEConfig": "layers:MoEConfig"},
    "nn": {},
    "nn.attn": {
        "FlashGroupedQueryAttention": "attention:FlashGroupedQueryAttention",
        "FlashSelfAttention": "attention:FlashSelfAttention",
    },
    "nn.huggingface": {},
    "nn.huggingface.llama_flashattn": {"LlamaFlashAttention": "llama:LlamaFlashAttention"},
    "tensor_parallel": {},
    "tensor_parallel.transformer": {
        "TETransformerLayer": "layers:TETransformerLayer",
        "TransformerLayer": "layers:TransformerLayer",
    },
    "utils": {},
    "utils.module_utils": {
        "empty_module_params": "delayed:empty_module_params",
        "move_buffers_to_device": "delayed:move_buffers_to_device",
    },
    "utils.process_group_utils": {"get_global_ranks": "notes:get_global_ranks"},
    "utils.utils": {"timeit": "notes:timeit"},
}


class _Module(ModuleType):
    """A module whose names are looked up when a script asks for them."""

    __path__: list[str] = []  # noqa: RUF012  what makes it a package

    def __init__(self, name: str, contents: dict[str, str]) -> None:
        super().__init__(name, f"{name}, as fccl-sagemaker serves it.")
        self._contents = contents
        self.__all__ = sorted(contents)

    def __getattr__(self, name: str) -> Any:
        contents = self.__dict__.get("_contents", {})
        if name not in contents:
            raise AttributeError(
                f"module {self.__name__!r} has no attribute {name!r}; fccl-sagemaker serves {self.__all__}"
            )
        module, _, attribute = contents[name].partition(":")
        return getattr(importlib.import_module(f"fccl_sagemaker.{module}"), attribute)


def install(root: str) -> None:
    """Makes every module of the table importable below `root`."""
    for below, contents in CONTENTS.items():
        name = f"{root}.{below}"
        parent, _, last = name.rpartition(".")
        sys.modules[name] = _Module(name, contents)
        setattr(sys.modules[parent], last, sys.modules[name])
