"""Tests of fccl_sagemaker.config."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from fccl_sagemaker.config import Config, ConfigError, Degrees, read_config


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SM_HP_MP_PARAMETERS", raising=False)


def test_nothing_given_means_the_defaults() -> None:
    assert read_config() == Config(0, True, 2, True, False, 1, 1, 1, 0)


@pytest.mark.parametrize("form", ["dict", "text", "path", "path as text", "environment"])
def test_every_form_of_a_configuration_is_read(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = {
        "hybrid_shard_degree": 2,
        "sm_activation_offloading": False,
        "activation_loading_horizon": 3,
        "tensor_parallel_seed": 7,
    }
    file = tmp_path / "smp.json"
    file.write_text(json.dumps(keys))
    monkeypatch.setenv(
        "SM_HP_MP_PARAMETERS", json.dumps(keys if form == "environment" else {"hybrid_shard_degree": 5})
    )
    given = {
        "dict": keys,
        "text": json.dumps(keys),
        "path": file,
        "path as text": os.fspath(file),
        "environment": None,
    }[form]
    assert read_config(given) == Config(2, False, 3, random_seed=7)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (
            {"hybrid_shard_degre": 2},
            ["'hybrid_shard_degre'", "value 2", "nearest key is 'hybrid_shard_degree'", "allowed"],
        ),
        ({"partitions": 2}, ["'partitions'", "value 2", "nearest key", "tensor_parallel_degree"]),
        ({"hybrid_shard_degree": -1}, ["'hybrid_shard_degree'", "-1", "at least 0"]),
        ({"tensor_parallel_degree": 0}, ["'tensor_parallel_degree'", "0", "at least 1"]),
        ({"tensor_parallel_degree": "2"}, ["'tensor_parallel_degree'", "'2'", "an integer of at least 1"]),
        ({"tensor_parallel_degree": True}, ["'tensor_parallel_degree'", "True", "an integer"]),
        ({"sm_activation_offloading": 1}, ["'sm_activation_offloading'", "1", "true or false"]),
        ({"activation_loading_horizon": 0}, ["'activation_loading_horizon'", "0", "at least 1"]),
        ({"fsdp_cache_flush_warnings": "yes"}, ["'fsdp_cache_flush_warnings'", "'yes'", "true or false"]),
        ({"allow_empty_shards": None}, ["'allow_empty_shards'", "None", "true or false"]),
        ({"context_parallel_degree": 2}, ["'context_parallel_degree'", "2", "allowed is 1", "not built"]),
        (
            {"expert_parallel_degree": 2},
            ["'expert_parallel_degree'", "2", "allowed is 1", "trainer/fsdp", "--expert-parallel"],
        ),
        ({"random_seed": 1.5}, ["'random_seed'", "1.5", "an integer of at least 0"]),
        ({"random_seed": 1, "tensor_parallel_seed": 2}, ["random_seed", "tensor_parallel_seed", "1", "2"]),
        ('{"random_seed": 1, "random_seed": 2}', ["'random_seed'", "twice"]),
        ('{"random_seed": ', ["line 1", "column"]),
        ("[1]", ["list", "dict"]),
        ("/no/such/file.json", ["/no/such/file.json", "No such file"]),
        (3, ["int", "dict"]),
    ],
)
def test_a_wrong_configuration_is_refused_with_key_value_and_what_is_allowed(
    given: Any, says: list[str]
) -> None:
    with pytest.raises(ConfigError) as refusal:
        read_config(given)
    sentence = str(refusal.value)
    assert "\n" not in sentence
    for each in says:
        assert each in sentence


@pytest.mark.parametrize(
    ("keys", "world", "degrees"),
    [
        ({}, 4, Degrees(1, 4, 1)),
        ({"hybrid_shard_degree": 1}, 4, Degrees(1, 1, 4)),
        ({"hybrid_shard_degree": 2}, 4, Degrees(1, 2, 2)),
        ({"tensor_parallel_degree": 2}, 8, Degrees(2, 4, 1)),
        ({"tensor_parallel_degree": 2, "hybrid_shard_degree": 2}, 8, Degrees(2, 2, 2)),
    ],
)
def test_degrees_split_the_world(keys: dict[str, int], world: int, degrees: Degrees) -> None:
    assert read_config(keys).degrees(world) == degrees


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ({"hybrid_shard_degree": 3}, ["'hybrid_shard_degree'", " 3,", "one of 1, 2, 4"]),
        ({"hybrid_shard_degree": 8}, ["'hybrid_shard_degree'", " 8,", "one of 1, 2, 4"]),
        ({"tensor_parallel_degree": 3}, ["'tensor_parallel_degree'", " 3,", "one of 1, 2, 4"]),
        (
            {"tensor_parallel_degree": 2, "hybrid_shard_degree": 4},
            ["'hybrid_shard_degree'", " 4,", "leaves", "one of 1, 2"],
        ),
    ],
)
def test_degrees_that_do_not_divide_the_world_are_refused(keys: dict[str, int], says: list[str]) -> None:
    with pytest.raises(ConfigError) as refusal:
        read_config(keys).degrees(4)
    for each in says:
        assert each in str(refusal.value)
