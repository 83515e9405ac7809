"""Chunks against llama-cookbook's number by number, and which samples each rank takes."""

import random

import pytest

from trainer.finetune.batches import Batches, pack


def samples_of(lengths: list[int]) -> list[dict[str, list[int]]]:
    draw = random.Random(4)
    drawn = [[draw.randrange(1000) for _ in range(length)] for length in lengths]
    return [{"input_ids": ids, "attention_mask": [1] * len(ids), "labels": [-100, *ids[1:]]} for ids in drawn]


@pytest.mark.parametrize("lengths", [[5, 9, 30, 1, 8], [8], [8, 8, 1], [4, 4], [16, 1], [3] * 40])
def test_chunks_are_llama_cookbooks(cookbook: None, lengths: list[int]) -> None:
    from llama_cookbook.data.concatenator import ConcatDataset

    theirs = ConcatDataset(samples_of(lengths), chunk_size=8)
    assert pack(samples_of(lengths), 8) == theirs.samples


def test_a_buffer_of_exactly_the_chunks_length_waits() -> None:
    assert pack(samples_of([8]), 8) == []
    assert len(pack(samples_of([8, 1]), 8)) == 1


@pytest.mark.parametrize("padding", [False, True])
@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_no_sample_of_an_epoch_comes_twice_and_only_a_rest_is_left_out(padding: bool, ranks: int) -> None:
    batches = Batches(samples_of([index % 7 + 2 for index in range(53)]), 3, padding, ranks, seed=5)
    taken = [number for each in batches.rounds(0) for mine in each for number in mine]
    assert len(taken) == len(set(taken)) == 53 // (ranks * 3) * ranks * 3
    assert len(batches.rounds(0)) == len(batches)


@pytest.mark.parametrize("padding", [False, True])
def test_an_epoch_that_other_ranks_have_begun_goes_on_where_they_stopped(padding: bool) -> None:
    samples = samples_of([index % 5 + 2 for index in range(48)])
    four, two = (Batches(samples, 2, padding, ranks, seed=5) for ranks in (4, 2))
    begun = [mine for each in four.rounds(1)[:3] for mine in each]
    rest = [mine for each in two.rounds(1, used=len(begun)) for mine in each]
    assert begun + rest == [mine for each in two.rounds(1) for mine in each]


def test_epochs_differ_in_their_order_and_validation_keeps_the_datasets() -> None:
    samples = samples_of([3] * 24)
    shuffled = Batches(samples, 2, False, 2, seed=5)
    assert shuffled.rounds(0) != shuffled.rounds(1)
    assert Batches(samples, 2, False, 2, seed=None).rounds(0)[0] == [[0, 1], [2, 3]]


def test_padded_batches_hold_samples_of_about_one_length(cookbook: None) -> None:
    from llama_cookbook.data.sampler import LengthBasedBatchSampler

    samples = samples_of([random.Random(index).randrange(2, 40) for index in range(31)])
    theirs = LengthBasedBatchSampler(samples, batch_size=3, drop_last=True, shuffle=False)
    ours = [mine for each in Batches(samples, 3, True, 1, seed=None).rounds(0) for mine in each]
    assert ours == [list(map(int, each)) for each in theirs]
    shuffled = [mine for each in Batches(samples, 3, True, 1, seed=1).rounds(0) for mine in each]
    assert shuffled != ours and sorted(shuffled) == sorted(ours)
