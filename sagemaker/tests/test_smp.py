"""Tests of torch.sagemaker over process groups; smp_ranks.py is what each rank runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from small_llama import BATCH, HIGHEST_NORM, LAYERS, LENGTH, WIDTH
from smp_cases import EIGHT, FOUR, STEPS

pytestmark = [pytest.mark.slow, pytest.mark.every_torch]

RANKS = Path(__file__).with_name("smp_ranks.py")
Found = list[dict[str, Any]]


def found_by(ranks: int, out: Path) -> Found:
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    ended = subprocess.run([*launcher, RANKS, out], capture_output=True, text=True, env=environment)
    assert ended.returncode == 0, ended.stderr[-4000:]
    return [json.loads((out / f"{rank}.json").read_text()) for rank in range(ranks)]


@pytest.fixture(scope="module")
def four(tmp_path_factory: pytest.TempPathFactory) -> Found:
    return found_by(4, tmp_path_factory.mktemp("four"))


@pytest.fixture(scope="module")
def eight(tmp_path_factory: pytest.TempPathFactory) -> Found:
    return found_by(8, tmp_path_factory.mktemp("eight"))


def assert_trained_as_one_process(found: Found, name: str) -> None:
    for rank in found:
        assert rank[name]["losses"] <= 1e-9 and rank[name]["states"] <= 1e-9
        # Gradients are clipped in each step, or in some.
        assert rank[name]["norms"] <= 1e-9 and rank[name]["largest norm"] > HIGHEST_NORM


def test_smddp_is_the_name_of_a_backend_that_fccl_serves(four: Found) -> None:
    assert all(rank["backend"] == "smddp" and rank["active"] is True for rank in four)


@pytest.mark.parametrize("name", FOUR)
def test_losses_norms_and_full_states_are_those_of_one_process(four: Found, name: str) -> None:
    assert_trained_as_one_process(four, name)


@pytest.mark.parametrize("name", EIGHT)
def test_eight_ranks_train_as_one_process_does(eight: Found, name: str) -> None:
    assert_trained_as_one_process(eight, name)
    state = [rank[name]["state"] for rank in eight]
    assert [each["rep rank"] for each in state] == [0] * 4 + [1] * 4
    assert [each["rep"] for each in state] == [[0, 1, 2, 3]] * 4 + [[4, 5, 6, 7]] * 4
    assert [each["tp"] for each in state] == [[0, 1]] * 2 + [[2, 3]] * 2 + [[4, 5]] * 2 + [[6, 7]] * 2


def test_a_degree_of_1_gathers_nothing(four: Found) -> None:
    for rank in four:
        assert rank["degree 1"]["strategy"] == "NO_SHARD"
        assert rank["degree 1"]["calls"]["AllGather"] == rank["degree 1"]["calls"]["ReduceScatter"] == 0


def test_shard_groups_move_the_bytes_of_their_size(four: Found) -> None:
    for rank in four:
        native, two, whole = (rank[name]["bytes"] for name in ("native", "degree 2", "degree 4"))
        weights = rank["native"]["parameters"] * 8 * STEPS
        assert [rank[name]["strategy"] for name in ("native", "degree 2", "degree 4")] == [
            "FULL_SHARD",
            "HYBRID_SHARD",
            "HYBRID_SHARD",
        ]
        # All that a step reduces are the gradients, once: the parameters of this model need no padding.
        assert native["ReduceScatter"] == two["ReduceScatter"] == whole["ReduceScatter"] == weights
        assert native["AllGather"] == two["AllGather"] == whole["AllGather"]
        # Beside them cross the loss and, where there are shards, the norm. Replicas sum what a rank keeps.
        assert native["AllReduce"] == 2 * 8 * STEPS
        assert two["AllReduce"] == weights // 2 + 2 * 8 * STEPS
        assert rank["degree 1"]["bytes"]["AllReduce"] == weights + 8 * STEPS


def test_the_state_says_degrees_and_groups(four: Found) -> None:
    native, two, tensor = (
        [rank[name]["state"] for rank in four] for name in ("native", "degree 2", "tensor 2")
    )
    assert [each["numbers"] for each in tensor] == [[0, 4, 0, 0], [1, 4, 1, 0], [2, 4, 0, 0], [3, 4, 1, 0]]
    assert [each["degrees"] for each in (native[0], two[0], tensor[0])] == [[0, 1, 1], [2, 1, 1], [2, 2, 2]]
    assert [each["tp"] for each in tensor] == [[0, 1], [0, 1], [2, 3], [2, 3]]
    assert [each["rep"] for each in tensor] == [[0, 1, 2, 3]] * 4
    assert [each["rep"] for each in two] == [[0, 1], [0, 1], [2, 3], [2, 3]]
    assert [each["rep rank"] for each in two] == [0, 0, 1, 1]
    for each in native:
        assert (each["tp"], each["rep"], each["others"]) == (None, None, [1, 1])
        assert each["world"] == [0, 1, 2, 3]


@pytest.mark.parametrize("horizon", [1, 2, 4])
def test_offloading_leaves_losses_as_they_are_bit_for_bit(four: Found, horizon: int) -> None:
    for rank in four:
        offloaded = rank[f"horizon {horizon}"]
        assert offloaded["losses"] == rank["plain"]["losses"]
        assert len(set(offloaded["losses"])) == STEPS
        assert offloaded["layers"] == LAYERS
        assert 1 <= offloaded["most_layers_near"] <= horizon
        assert offloaded["bytes_offloaded"] == LAYERS * (BATCH // len(four)) * LENGTH * WIDTH * 8


def test_torch_offloads_where_the_key_is_false(four: Found) -> None:
    for rank in four:
        assert rank["torch's offloading"]["losses"] == rank["plain"]["losses"]
        assert rank["torch's offloading"]["layers"] == 0


def test_wrong_configurations_are_refused_and_the_group_stays_good(four: Found) -> None:
    for rank in four:
        *sentences, total = rank["wrong"]
        assert len(sentences) == 15 and len(set(sentences)) == 15
        for place, said in (
            (10, "num_attention_heads=2"),
            (11, "cannot split Linear among 4 ranks, since the model brings no plan"),
            (12, "cp_comm_type='ring'; allowed is 'p2p' or 'all_gather'"),
            (13, "a config of type dict, which SMP uses to split experts"),
            (14, "random_seed=0 first and random_seed=5 now"),
        ):
            assert said in sentences[place]
        assert total == 0 + 1 + 2 + 3


def test_a_mesh_or_a_group_of_the_script_is_left_alone(four: Found) -> None:
    for number, rank in enumerate(four):
        pair = [0, 1] if number < 2 else [2, 3]
        assert rank["own mesh"] == [["FULL_SHARD", [0, 1, 2, 3]], ["SHARD_GRAD_OP", pair]]


def test_hybrid_shards_without_degrees_stay_on_a_host(four: Found) -> None:
    for number, rank in enumerate(four):
        apart, strategy, ranks = rank["hosts"]
        assert apart <= 1e-9
        assert (strategy, ranks) == ("HYBRID_SHARD", [0, 1] if number < 2 else [2, 3])


def test_weights_of_rank_0_reach_every_rank(four: Found) -> None:
    assert all(rank["rank 0's weights"] == [0, 0, 0] for rank in four)


def test_delayed_parameters_are_drawn_as_the_model_would(four: Found) -> None:
    for rank in four:
        drawn = rank["drawn"]
        assert 0.015 < drawn["spread"] < 0.025
        assert drawn["shards"] == drawn["split"] == 0
        apart, same_names, count = drawn["buffers"]
        assert apart == 0 and same_names and count > 0
        assert drawn["count"][0] == drawn["count"][1]
        assert "are still on meta" in drawn["refused"]
    assert four[0]["drawn"]["another seed"] > 0.01


def test_delayed_parameters_that_are_tied_stay_so(four: Found) -> None:
    assert four[0]["tied"]["apart"] == [0, 0] and four[0]["tied"]["moved"] > 0.001


def test_delayed_parameters_are_made_by_a_function_of_the_script(four: Found) -> None:
    # 0.25 x (1.5 + 2.5 + 3.5)
    assert all(rank["custom"] == {"scale": [1.5, 2.5, 3.5], "made": [[1.875] * 5]} for rank in four)


def test_delayed_parameters_that_a_folder_fills_train_as_one_process_does(four: Found) -> None:
    assert all(rank["folder"] <= 1e-9 for rank in four)


def test_the_first_replica_saves_over_its_group_as_aws_documents(four: Found) -> None:
    assert [rank["AWS's checkpoint"]["saved here"] for rank in four] == [True, True, False, False]
    assert [rank["AWS's checkpoint"]["finished"] for rank in four] == [1, 1, 0, 0]
    assert all(rank["AWS's checkpoint"]["loaded"] == 0 for rank in four)
    assert all(rank["AWS's checkpoint"]["goes on"] <= 1e-9 for rank in four)


def test_an_asynchronous_checkpoint_has_the_weights_of_its_call(four: Found) -> None:
    for rank in four:
        found = rank["asynchronous"]
        # The second call has waited for the first one.
        assert found["finished"] == [1, True]
        assert found["loaded"] == found["whole"] == 0
        assert "other ranks hold parts of its tensors" in found["refused"]
    assert four[0]["asynchronous"]["trained on"] > 0.001


def test_a_model_goes_on_from_a_checkpoint_with_its_optimizer_and_scheduler(four: Found) -> None:
    for rank in four:
        found = rank["model checkpoint"]
        assert found["loaded"] == 0 and found["goes on"] <= 1e-9
        assert found["rate"] == [0.005]
        assert found["beside"] == {"total_steps": 3, "start_train_path_index": 4}


def test_keys_that_differ_between_ranks_are_named_on_every_rank(four: Found) -> None:
    for rank in four:
        differing, coordinator = rank["keys"]
        assert "other keys on rank 2 than on rank 0: two;" in differing
        assert "coordinator_rank is 3" in coordinator


def test_shards_without_a_row_are_saved_and_loaded(four: Found) -> None:
    assert all(rank["empty shards"] == [0, 0] for rank in four)


def test_restoring_gives_torch_its_classes_back(four: Found) -> None:
    assert all(rank["restored"] is True for rank in four)
