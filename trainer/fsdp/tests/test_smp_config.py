"""A JSON file of SageMaker's keys stands for arguments of the trainer."""

import importlib.util
import json
from pathlib import Path
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
        ({"tensor_parallel_degre": 2}, "'tensor_parallel_degre' .* nearest key is 'tensor_parallel_degree'"),
        ({"tensor_parallel_degree": 0}, "is 0; allowed is an integer of at least 1"),
        ({"tensor_parallel_degree": True}, "is True; allowed is an integer of at least 1"),
        ({"tensor_parallel_degree": 3}, "--tensor-parallel 3 does not divide 8 ranks"),
        ({"hybrid_shard_degree": 3}, "--shard-degree 3 does not divide 8 ranks"),
        ({"hybrid_shard_degree": "2"}, "is '2'; allowed is an integer of at least 0"),
        ({"context_parallel_degree": 2}, "allowed is 1, since context parallelism is not built"),
        ({"sm_activation_offloading": True}, "give --activation-checkpointing or"),
        ({"sm_activation_offloading": 1}, "is 1; allowed is true or false"),
        ({"activation_loading_horizon": 0}, "is 0; allowed is an integer of at least 1"),
        ({"expert_parallel_degree": 4}, "only 2 is known"),
        ([], "list; give a dict, JSON text of an object"),
    ],
)
def test_wrong_file_is_refused_with_what_is_allowed(
    tmp_path: Path, keys: dict[str, Any], message: str
) -> None:
    with pytest.raises(SettingsError, match=message):
        settings_of(tmp_path, keys)


def test_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"cannot read .*none\.json.*No such file"):
        parse(["--smp-config", str(tmp_path / "none.json")])


@pytest.mark.parametrize(("horizon", "expected"), [({}, 2), ({"activation_loading_horizon": 5}, 5)])
def test_offloading_of_the_file_is_asked_for_with_its_horizon(
    tmp_path: Path, horizon: dict[str, int], expected: int
) -> None:
    keys = {"sm_activation_offloading": True, **horizon}
    assert settings_of(tmp_path, keys, "--activation-checkpointing").offload_activations == expected


def test_keys_of_which_the_trainer_makes_nothing_leave_its_defaults(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, {"activation_loading_horizon": 5, "context_parallel_degree": 1})
    assert (settings.offload_activations, settings.strategy, settings.seed) == (None, "full_shard", 0)


@pytest.mark.parametrize(
    "words", ["--smp-config {file}", "--activation-checkpointing --offload-activations 2"]
)
def test_what_the_package_serves_is_refused_without_it_with_how_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SettingsError, match=r"package fccl-sagemaker.*: pip install"):
        parse(words.format(file=tmp_path / "smp.json").split())
