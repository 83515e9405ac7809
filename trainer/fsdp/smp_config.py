"""Reads the keys of SageMaker's model parallelism, version 2, as arguments of this trainer."""

import importlib.util
from pathlib import Path
from typing import Any

ARGUMENTS = {
    "tensor_parallel_degree": "tensor_parallel",
    "expert_parallel_degree": "expert_parallel",
    "random_seed": "seed",
}
"""Keys that are arguments of another name."""


class SmpConfigError(Exception):
    """A file that cannot be followed; its text says which key, its value and what is allowed."""


def package_is_missing() -> bool:
    """Tells if the package fccl-sagemaker, which knows SageMaker's keys, is missing."""
    return importlib.util.find_spec("fccl_sagemaker") is None


def read_arguments(file: Path) -> dict[str, Any]:
    """The arguments that a JSON file of such keys stands for."""
    if package_is_missing():
        raise SmpConfigError(
            f"{file} is read by the package fccl-sagemaker, which is not installed: "
            "pip install --no-build-isolation --no-deps ./sagemaker"
        )
    from fccl_sagemaker.config import Config, ConfigError, read_keys  # which other runs do not need

    try:
        keys = read_keys(file, serves=("expert_parallel_degree",))
    except ConfigError as error:
        raise SmpConfigError(f"{file}: {error}") from error
    arguments = {ARGUMENTS[key]: value for key, value in keys.items() if key in ARGUMENTS}
    arguments |= _sharding_of(keys.get("hybrid_shard_degree", 0))
    # Nothing is offloaded unless the file asks for it: SMP's default waits for a script's offload_wrapper.
    if keys.get("sm_activation_offloading"):
        arguments["offload_activations"] = Config(**keys).activation_loading_horizon
    return arguments


def _sharding_of(degree: int) -> dict[str, Any]:
    if degree == 0:
        return {}
    return {"strategy": "no_shard"} if degree == 1 else {"strategy": "hybrid_shard", "shard_degree": degree}
