"""Tests of torch.sagemaker over process groups; smp_ranks.py is what each rank runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from small_llama import BATCH, LAYERS, LENGTH, WIDTH

pytestmark = pytest.mark.slow

RANKS = Path(__file__).with_name("smp_ranks.py")


def found_by(ranks: int, extent: str, out: Path) -> list[dict[str, Any]]:
    command = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        f"--nproc-per-node={ranks}",
        RANKS,
        out,
        extent,
    ]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    ended = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert ended.returncode == 0, ended.stderr[-4000:]
    return [json.loads((out / f"{rank}.json").read_text()) for rank in range(ranks)]


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    return found_by(4, "quick", tmp_path_factory.mktemp("quick"))


def assert_losses_and_weights_agree(found: list[dict[str, Any]], name: str) -> None:
    for rank in found:
        assert rank[name]["losses"] <= 1e-9, name
        assert rank[name]["states"] <= 1e-9, name


def test_smddp_is_the_name_of_a_backend_that_fccl_serves(quick: list[dict[str, Any]]) -> None:
    assert all(rank["backend"] == "smddp" and rank["active"] is True for rank in quick)


@pytest.mark.parametrize("name", ["native", "degree 2", "tensor 2", "tensor 4"])
def test_losses_and_full_states_are_those_of_one_process(quick: list[dict[str, Any]], name: str) -> None:
    assert_losses_and_weights_agree(quick, name)


def test_a_degree_of_2_moves_the_bytes_of_a_group_of_2(quick: list[dict[str, Any]]) -> None:
    assert all(rank["degree 2"]["strategy"] == "HYBRID_SHARD" for rank in quick)
    for rank in quick:
        moved, native = rank["degree 2"]["bytes"], rank["native"]["bytes"]
        # Replicas sum what a rank keeps of the gradients: half of them in a group of 2.
        assert moved["AllReduce"] - native["AllReduce"] == moved["ReduceScatter"] // 2


def test_tensor_parallel_ranks_are_neighbours(quick: list[dict[str, Any]]) -> None:
    assert [rank["tensor 2"]["tp_rank"] for rank in quick] == [0, 1, 0, 1]
    assert [rank["degree 2"]["rep_rank"] for rank in quick] == [0, 0, 1, 1]


def test_offloading_leaves_losses_as_they_are_bit_for_bit(quick: list[dict[str, Any]]) -> None:
    for rank in quick:
        offloaded = rank["horizon 2"]
        assert offloaded["losses"] == rank["plain"]["losses"]
        assert offloaded["layers"] == LAYERS
        assert 1 <= offloaded["most_layers_near"] <= 2
        assert offloaded["bytes_offloaded"] == LAYERS * (BATCH // len(quick)) * LENGTH * WIDTH * 8


def test_wrong_configurations_are_refused_and_the_group_stays_good(quick: list[dict[str, Any]]) -> None:
    for rank in quick:
        *sentences, total = rank["wrong"]
        assert len(sentences) == 12
        assert "num_attention_heads=2" in sentences[10]
        assert "random_seed=0 first and random_seed=5 now" in sentences[11]
        assert total == 0 + 1 + 2 + 3


def test_weights_of_rank_0_reach_every_rank(quick: list[dict[str, Any]]) -> None:
    assert all(rank["rank 0's weights"]["states"] == 0 for rank in quick)


def test_delayed_parameters_are_drawn_as_the_model_would(quick: list[dict[str, Any]]) -> None:
    assert all(0.015 < rank["delayed"]["spread"] < 0.025 for rank in quick)


def test_delayed_parameters_that_a_folder_fills_train_as_one_process_does(
    quick: list[dict[str, Any]],
) -> None:
    assert all(rank["folder"]["losses"] <= 1e-9 for rank in quick)


def test_an_asynchronous_checkpoint_comes_back(quick: list[dict[str, Any]]) -> None:
    assert all(
        len(rank["checkpoint"]["finished"]) == 1 and rank["checkpoint"]["states"] == 0 for rank in quick
    )


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [4, 8])
def test_every_degree_trains_as_one_process_does(ranks: int, tmp_path: Path) -> None:
    found = found_by(ranks, "all", tmp_path)
    for name in found[0]:
        if "strategy" in (found[0][name] if isinstance(found[0][name], dict) else ()):
            assert_losses_and_weights_agree(found, name)
    if ranks == 4:
        assert all(rank["degree 1"]["calls"]["AllGather"] == 0 for rank in found)
        for horizon in (1, 2, 4):
            assert all(rank[f"horizon {horizon}"]["losses"] == rank["plain"]["losses"] for rank in found)
            assert all(1 <= rank[f"horizon {horizon}"]["most_layers_near"] <= horizon for rank in found)
