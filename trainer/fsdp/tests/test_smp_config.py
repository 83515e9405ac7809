"""A JSON file of SageMaker's keys stands for arguments of the trainer."""

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
        ({"tensor_parallel_degre": 2}, "tensor_parallel_degre is unknown; tensor_parallel_degree is near"),
        ({"tensor_parallel_degree": 0}, "is 0; an integer from 1 on"),
        ({"tensor_parallel_degree": True}, "is True; an integer from 1 on"),
        ({"tensor_parallel_degree": 3}, "--tensor-parallel 3 does not divide 8 ranks"),
        ({"hybrid_shard_degree": 3}, "--shard-degree 3 does not divide 8 ranks"),
        ({"hybrid_shard_degree": "2"}, "is '2'; an integer from 0 on"),
        ({"context_parallel_degree": 2}, "does not split sequences"),
        ({"sm_activation_offloading": True}, "set it to false"),
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
