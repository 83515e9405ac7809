"""A rank holds its share, and makes the calls that sharding implies."""

import pytest

from trainer.cpp.tests.runs import Runs

ARGUMENTS = "--steps 5 --save-every 0"
# The tiny preset of width 64: embedding, four blocks, head.
HIDDEN, INNER, VOCABULARY, BLOCKS, BYTES = 64, 170, 257, 4, 4
BLOCK = 4 * HIDDEN * HIDDEN + 3 * HIDDEN * INNER + 2 * HIDDEN
LAYERS = [VOCABULARY * HIDDEN, *[BLOCK] * BLOCKS, HIDDEN + VOCABULARY * HIDDEN]


def padded(layer: int, ranks: int) -> int:
    return -(-layer // ranks) * ranks


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_a_rank_keeps_its_share_of_parameters_gradients_and_optimizer(runs: Runs, ranks: int) -> None:
    share = sum(padded(layer, ranks) // ranks for layer in LAYERS) * BYTES
    held = runs.of(ranks, ARGUMENTS).summary["held"]
    assert (held["parameters"], held["gradients"], held["optimizer"]) == (share, share, 2 * share)


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_a_rank_holds_two_whole_layers_and_two_of_gradients_at_most(runs: Runs, ranks: int) -> None:
    two = 2 * padded(max(LAYERS), ranks) * BYTES
    held = runs.of(ranks, ARGUMENTS).summary["held"]
    assert held["rows"] == two
    assert held["row_gradients"] == two


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_a_rank_holds_one_whole_layer_and_one_of_gradients_where_nothing_overlaps(
    runs: Runs, ranks: int
) -> None:
    one = padded(max(LAYERS), ranks) * BYTES
    summary = runs.of(ranks, f"{ARGUMENTS} --overlap no").summary
    assert (summary["held"]["rows"], summary["held"]["row_gradients"]) == (one, one)
    overlapping = runs.of(ranks, ARGUMENTS).summary
    for same in ["steps", "loss", "all_gathers", "reduce_scatters", "all_reduces"]:
        assert summary[same] == overlapping[same]


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_a_step_gathers_blocks_twice_and_the_rest_once(runs: Runs, ranks: int) -> None:
    summary = runs.of(ranks, ARGUMENTS).summary
    assert summary["steps"] == 5
    assert summary["all_gathers"] == 5 * (2 * BLOCKS + 2)
    assert summary["reduce_scatters"] == 5 * (BLOCKS + 2)
    assert summary["all_reduces"] == 5
