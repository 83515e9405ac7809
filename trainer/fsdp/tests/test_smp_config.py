"""A JSON file of SageMaker's keys stands for arguments of the trainer."""

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from trainer.fsdp.arguments import Settings, SettingsError, parse


def settings_of(folder: Path, keys: dict[str, Any], *words: str) -> Settings:
    file = folder / "smp.json"
    file.write_text(json.dumps(keys))
    return parse(["--smp-config", str(file), "--ranks", "8", *words])


@pytest.mark.parametrize(
    ("degree", "strategy", "shards"), [(0, "full_shard", 4), (1, "no_shard", 1), (2, "hybrid_shard", 2)]
)
def test_degrees_decide_on_strategy_and_shards(
    tmp_path: Path, degree: int, strategy: str, shards: int
) -> None:
    keys = {"hybrid_shard_degree": degree, "tensor_parallel_degree": 2, "random_seed": 7}
    keys |= {
        "sm_activation_offloading": False,
        "allow_empty_shards": True,
        "fsdp_cache_flush_warnings": False,
    }
    settings = settings_of(tmp_path, keys)
    assert (settings.strategy, settings.shards) == (strategy, shards)
    assert (settings.tensor_parallel, settings.seed) == (2, 7)


def test_argument_of_the_command_line_goes_before_the_file(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, {"tensor_parallel_degree": 2, "random_seed": 7}, "--seed", "9")
    assert (settings.tensor_parallel, settings.seed) == (2, 9)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"tensor_parallel_degre": 2}, "tensor_parallel_degre is unknown; tensor_parallel_degree is near"),
        ({"tensor_parallel_degree": 0}, "is 0; an integer from 1 on"),
        ({"tensor_parallel_degree": True}, "is True; an integer from 1 on"),
        ({"tensor_parallel_degree": 3}, "--tensor-parallel 3 does not divide 8 ranks"),
        ({"hybrid_shard_degree": 3}, "--shard-degree 3 does not divide 8 ranks"),
        ({"hybrid_shard_degree": "2"}, "is '2'; an integer from 0 on"),
        ({"context_parallel_degree": 2}, "does not split sequences"),
        ({"sm_activation_offloading": True}, "give --activation-checkpointing or"),
        ({"sm_activation_offloading": 1}, "is 1; true and false are allowed"),
        ({"activation_loading_horizon": 0}, "is 0; an integer from 1 on"),
        ({"expert_parallel_degree": 4}, "only 2 is known"),
        ([], "one JSON object"),
    ],
)
def test_wrong_file_is_refused_with_what_is_allowed(
    tmp_path: Path, keys: dict[str, Any], message: str
) -> None:
    with pytest.raises(SettingsError, match=message):
        settings_of(tmp_path, keys)


def test_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot be read as JSON"):
        parse(["--smp-config", str(tmp_path / "none.json")])


@pytest.mark.parametrize(("horizon", "expected"), [({}, 2), ({"activation_loading_horizon": 5}, 5)])
def test_offloading_of_the_file_is_asked_for_with_its_horizon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, horizon: dict[str, int], expected: int
) -> None:
    monkeypatch.setitem(sys.modules, "fccl_sagemaker", stand_in("fccl_sagemaker"))
    keys = {"sm_activation_offloading": True, **horizon}
    assert settings_of(tmp_path, keys, "--activation-checkpointing").offload_activations == expected


def test_offloading_without_its_package_is_refused_with_how_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SettingsError, match="needs the package fccl-sagemaker: pip install"):
        settings_of(tmp_path, {"sm_activation_offloading": True}, "--activation-checkpointing")


def stand_in(name: str) -> ModuleType:
    module = ModuleType(name)
    module.__spec__ = importlib.util.spec_from_loader(name, None)
    return module
