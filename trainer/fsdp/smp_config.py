"""Reads the keys of SageMaker's model parallelism, version 2, as arguments of this trainer."""

import difflib
import json
from pathlib import Path
from typing import Any

ARGUMENTS = {
    "tensor_parallel_degree": "tensor_parallel",
    "expert_parallel_degree": "expert_parallel",
    "random_seed": "seed",
    "tensor_parallel_seed": "seed",
}
"""Keys that are arguments of another name."""

WITHOUT_EFFECT = ("fsdp_cache_flush_warnings", "allow_empty_shards")
KEYS = (
    *ARGUMENTS,
    *WITHOUT_EFFECT,
    "hybrid_shard_degree",
    "context_parallel_degree",
    "sm_activation_offloading",
    "activation_loading_horizon",
)


MAY_BE_ZERO = ("hybrid_shard_degree", "random_seed", "tensor_parallel_seed")
HORIZON = 2
"""Layers near at once where the file does not say how many."""


class SmpConfigError(Exception):
    """A file that cannot be followed; its text says which key, its value and what is allowed."""


def read_arguments(file: Path) -> dict[str, Any]:
    """The arguments that a JSON file of such keys stands for."""
    try:
        keys = json.loads(file.read_text())
    except (OSError, ValueError) as error:
        raise SmpConfigError(f"{file} cannot be read as JSON: {error}") from error
    if not isinstance(keys, dict):
        raise SmpConfigError(f"{file} must hold one JSON object with keys such as {KEYS[0]}")
    arguments: dict[str, Any] = {}
    for key, value in keys.items():
        arguments |= _arguments_of(file, key, value)
    if keys.get("sm_activation_offloading") is True:
        arguments["offload_activations"] = keys.get("activation_loading_horizon", HORIZON)
    return arguments


def _arguments_of(file: Path, key: str, value: Any) -> dict[str, Any]:
    if key not in KEYS:
        near = difflib.get_close_matches(key, KEYS, n=1)
        raise SmpConfigError(f"{file}: {key} is unknown; {f'{near[0]} is near' if near else ', '.join(KEYS)}")
    if key in WITHOUT_EFFECT:
        return {}
    if key == "sm_activation_offloading":
        if type(value) is not bool:
            raise SmpConfigError(f"{file}: {key} is {value!r}; true and false are allowed")
        return {}
    lowest = 0 if key in MAY_BE_ZERO else 1
    if type(value) is not int or value < lowest:
        raise SmpConfigError(f"{file}: {key} is {value!r}; an integer from {lowest} on is allowed")
    if key == "activation_loading_horizon":
        return {}
    if key == "context_parallel_degree":
        if value > 1:
            raise SmpConfigError(
                f"{file}: {key} {value}: this trainer does not split sequences; 1 is allowed"
            )
        return {}
    if key == "hybrid_shard_degree":
        return _sharding_of(value)
    return {ARGUMENTS[key]: value}


def _sharding_of(degree: int) -> dict[str, Any]:
    if degree == 0:
        return {}
    return {"strategy": "no_shard"} if degree == 1 else {"strategy": "hybrid_shard", "shard_degree": degree}
