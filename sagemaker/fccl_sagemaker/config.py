"""Reads the configuration of torch.sagemaker.init() and refuses what it cannot mean."""

from __future__ import annotations

import dataclasses
import difflib
import json
import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Union

ENVIRONMENT_VARIABLE = "SM_HP_MP_PARAMETERS"
OTHER_NAMES = {"tensor_parallel_seed": "random_seed"}
LEAST = {
    "hybrid_shard_degree": 0,
    "activation_loading_horizon": 1,
    "tensor_parallel_degree": 1,
    "context_parallel_degree": 1,
    "expert_parallel_degree": 1,
    "random_seed": 0,
}
NOT_BUILT = {
    "context_parallel_degree": "context parallelism is not built; leave the key at 1 and shorten the "
    "sequences, or shard further by "
    "hybrid_shard_degree",
    "expert_parallel_degree": "init() does not split experts; leave the key at 1, or train with "
    "trainer/fsdp and its --expert-parallel",
}


class ConfigError(ValueError):
    """One sentence on a configuration that cannot be served."""


@dataclasses.dataclass(frozen=True)
class Degrees:
    """Into how many ranks each dimension splits the world: tensor x shard x replicas is its size."""

    tensor: int
    shard: int
    replicas: int


@dataclasses.dataclass(frozen=True)
class Config:
    """The keys of torch.sagemaker.init() and their defaults."""

    hybrid_shard_degree: int = 0
    sm_activation_offloading: bool = True
    activation_loading_horizon: int = 2
    fsdp_cache_flush_warnings: bool = True
    allow_empty_shards: bool = False
    tensor_parallel_degree: int = 1
    context_parallel_degree: int = 1
    expert_parallel_degree: int = 1
    random_seed: int = 0

    def degrees(self, world_size: int) -> Degrees:
        """How these degrees split a world; 0 shards over all that tensor parallelism leaves."""
        tensor = self.tensor_parallel_degree
        if world_size % tensor:
            raise ConfigError(
                _does_not_divide(
                    "tensor_parallel_degree", tensor, world_size, f"the {world_size} ranks of this job"
                )
            )
        left = world_size // tensor
        shard = self.hybrid_shard_degree or left
        if left % shard:
            beside = (
                f"the {left} ranks of this job"
                if tensor == 1
                else f"the {left} ranks that tensor_parallel_degree={tensor} leaves"
            )
            raise ConfigError(_does_not_divide("hybrid_shard_degree", shard, left, beside))
        return Degrees(tensor, shard, left // shard)


Given = Union[str, "os.PathLike[str]", Mapping[str, Any], Config, None]


def read_config(given: Given = None) -> Config:
    """A dict, JSON text, the path of a JSON file; else what SM_HP_MP_PARAMETERS holds; else the defaults."""
    return given if isinstance(given, Config) else Config(**read_keys(given))


def read_keys(given: Given = None, serves: Collection[str] = ()) -> dict[str, Any]:
    """The keys that are given, by their newest names; the caller serves those of NOT_BUILT in `serves`."""
    source = "config"
    if given is None:
        text = os.environ.get(ENVIRONMENT_VARIABLE, "").strip()
        if not text:
            return {}
        given, source = text, f"the environment's {ENVIRONMENT_VARIABLE}"
    if isinstance(given, (str, os.PathLike)):
        given = _parse(os.fspath(given), source)
    if not isinstance(given, Mapping):
        raise ConfigError(
            f"torch.sagemaker reads its configuration from {source}, which is of type "
            f"{type(given).__name__}; give a dict, JSON text of "
            "an object, or the path of a JSON file"
        )
    return _checked(given, serves)


def _parse(text: str, source: str) -> Any:
    origin = source
    if not text.lstrip().startswith(("{", "[")):
        origin = f"the file {text!r} that {source} names"
        try:
            text = Path(text).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError, ValueError) as error:
            raise ConfigError(
                f"torch.sagemaker cannot read {origin}: {getattr(error, 'strerror', None) or error}; "
                f"give a dict, JSON text of an object, "
                "or the path of a JSON file"
            ) from error
    try:
        return json.loads(text, object_pairs_hook=_without_duplicates)
    except json.JSONDecodeError as error:
        raise ConfigError(
            f"torch.sagemaker reads JSON from {origin}, but at line {error.lineno}, column "
            f"{error.colno}: {error.msg}"
        ) from error


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ConfigError(
                f"key {key!r} of torch.sagemaker's configuration is given twice, as {found[key]!r} and "
                f"{value!r}; give it once"
            )
        found[key] = value
    return found


def _checked(given: Mapping[str, Any], serves: Collection[str]) -> dict[str, Any]:
    types = {field.name: type(field.default) for field in dataclasses.fields(Config)}
    values: dict[str, Any] = {}
    for written, value in given.items():
        key = OTHER_NAMES.get(written, written) if isinstance(written, str) else written
        if key not in types:
            raise ConfigError(_unknown(written, value, [*types, *OTHER_NAMES]))
        if key in values and values[key] != value:
            raise ConfigError(
                f"keys 'random_seed' and 'tensor_parallel_seed' are one, but they are {values[key]!r} "
                f"and {value!r}; give one of them"
            )
        # Python takes a bool for an int, but true is not a number of ranks.
        if type(value) is not types[key]:
            wanted = "true or false" if types[key] is bool else f"an integer of at least {LEAST[key]}"
            raise ConfigError(
                f"key {written!r} of torch.sagemaker's configuration is {value!r}; allowed is {wanted}"
            )
        if key in LEAST and value < LEAST[key]:
            raise ConfigError(
                f"key {written!r} of torch.sagemaker's configuration is {value!r}; allowed is an "
                f"integer of at least {LEAST[key]}"
            )
        if key in NOT_BUILT and key not in serves and value != 1:
            raise ConfigError(
                f"key {written!r} of torch.sagemaker's configuration is {value!r}; allowed is 1, since "
                f"{NOT_BUILT[key]}"
            )
        values[key] = value
    return values


def _unknown(key: Any, value: Any, known: list[str]) -> str:
    # Every key is near to something: the caller may have meant it.
    nearest = difflib.get_close_matches(str(key), known, n=1, cutoff=0.0)[0]
    return (
        f"key {key!r} (with the value {value!r}) is unknown to torch.sagemaker; the nearest key is "
        f"{nearest!r}, and these are allowed: "
        f"{', '.join(known)}"
    )


def _does_not_divide(key: str, value: int, number: int, what: str) -> str:
    allowed = ", ".join(str(each) for each in range(1, number + 1) if number % each == 0)
    return (
        f"key {key!r} of torch.sagemaker's configuration is {value}, which does not divide {what}; "
        f"allowed is one of {allowed}"
    )
