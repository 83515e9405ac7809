"""The order of the images, and their crops, follow from seed, epoch and place."""

import os
import select
import signal
import time
from pathlib import Path

import numpy
import pytest
import torch

pytest.importorskip("torchvision")

from trainer.ddp.arguments import Settings, SettingsError, parse
from trainer.ddp.data import Feed, Place, Share, validation_batches
from trainer.ddp.tests.images import four_colours


def settings_for(data: Path, *words: str) -> Settings:
    return parse([str(data), "--image-size", "16", "--seed", "3", *words])


def ids_of(feed: Feed, place: Place, parts: int, images: int) -> list[int]:
    return [each for part in range(parts) for each in feed.next(place, Share(part, parts, images)).ids]


def test_ranks_take_the_next_equal_parts_of_the_epochs_permutation(data: Path) -> None:
    feed = Feed(settings_for(data))
    order = numpy.random.default_rng((3, 1)).permutation(48).tolist()
    assert ids_of(feed, Place(7, 1, 10), parts=3, images=4) == order[10:22]


def test_another_number_of_ranks_goes_on_where_the_first_stopped(data: Path) -> None:
    feed = Feed(settings_for(data))
    taken = (
        ids_of(feed, Place(0, 0, 0), 2, 6)
        + ids_of(feed, Place(1, 0, 12), 1, 12)
        + ids_of(feed, Place(2, 0, 24), 3, 8)
    )
    assert taken == numpy.random.default_rng((3, 0)).permutation(48).tolist()


def test_an_epoch_ends_when_less_than_a_step_is_left(data: Path) -> None:
    feed = Feed(settings_for(data))
    assert feed.fits(Place(used=38), Share(0, 2, 5)) and not feed.fits(Place(used=39), Share(0, 2, 5))


@pytest.mark.parametrize("workers", ["0", "2"])
def test_an_image_is_cropped_alike_by_whatever_rank_and_worker(data: Path, workers: str) -> None:
    whole = Feed(settings_for(data)).next(Place(0, 2, 0), Share(0, 1, 8))
    feed = Feed(settings_for(data, "--workers", workers))
    part = feed.next(Place(0, 2, 0), Share(1, 2, 4))
    assert part.ids == whole.ids[4:]
    assert torch.equal(part.images, whole.images[4:]) and torch.equal(part.labels, whole.labels[4:])


def test_an_image_is_cropped_otherwise_in_another_epoch(data: Path) -> None:
    dataset = Feed(settings_for(data))._images
    assert not torch.equal(dataset[0, 5][0], dataset[1, 5][0])


def test_drawing_a_crop_leaves_the_generator_of_dropout_alone(data: Path) -> None:
    torch.manual_seed(4)
    expected = torch.rand(3)
    torch.manual_seed(4)
    Feed(settings_for(data)).next(Place(), Share(0, 1, 2))
    assert torch.equal(torch.rand(3), expected)


def test_ranks_share_the_images_to_validate(data: Path) -> None:
    settings = settings_for(data)
    classes = Feed(settings).classes
    counts = [
        sum(len(labels) for _, labels in validation_batches(settings, classes, Share(part, 5, 4)))
        for part in range(5)
    ]
    assert sum(counts) == 24 and max(counts) == 5


def test_the_readers_of_a_rank_that_was_killed_die_with_it(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "none")
    reading, writing = os.pipe()
    rank = os.fork()
    if rank == 0:
        try:
            feed = Feed(settings_for(data, "--workers", "1"))
            feed.next(Place(), Share(0, 1, 2))
            os.write(writing, str(feed._batches._workers[0].pid).encode())
            signal.pause()
        finally:
            os._exit(1)
    os.close(writing)
    reader = int(os.read(reading, 20))
    os.close(reading)
    watched = os.pidfd_open(reader)
    # It has read ahead and waits then, and torch lets it look after its rank each 5 s.
    time.sleep(1)
    os.kill(rank, signal.SIGKILL)
    os.waitpid(rank, 0)
    assert select.select([watched], [], [], 3)[0] == [watched]
    os.close(watched)


def test_a_folder_without_classes_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=f"{tmp_path}/train.*CLASS/IMAGE"):
        Feed(settings_for(tmp_path))


def test_other_classes_to_validate_are_refused(tmp_path: Path) -> None:
    settings = settings_for(four_colours(tmp_path, 2))
    (tmp_path / "val" / "red").rename(tmp_path / "val" / "rouge")
    with pytest.raises(SettingsError, match="different classes, red among them"):
        validation_batches(settings, Feed(settings).classes, Share(0, 1, 2))
