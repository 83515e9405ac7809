"""Says which images each rank takes in each step, and crops them, by seed, epoch and place alone."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy
import torch
from torch.utils.data import DataLoader, Dataset, Subset
from torchvision import transforms
from torchvision.datasets import ImageFolder

from trainer.ddp.arguments import Settings, SettingsError
from trainer.fsdp.interrupt import die_with_the_launcher

NORMALIZE = transforms.Normalize(mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225))
# ImageNet's usual ratio: images of 224 pixels are cut out of 256.
MARGIN = 256 / 224


@dataclass(frozen=True)
class Place:
    """The point that a run has reached; any number of ranks can go on there from a checkpoint."""

    step: int = 0
    epoch: int = 0
    used: int = 0

    def after(self, images: int) -> "Place":
        return replace(self, step=self.step + 1, used=self.used + images)

    def in_next_epoch(self) -> "Place":
        return replace(self, epoch=self.epoch + 1, used=0)


@dataclass(frozen=True)
class Share:
    """One rank's share of a step: the part of this number, among so many parts of so many images."""

    part: int
    parts: int
    images: int


@dataclass(frozen=True)
class Batch:
    ids: list[int]
    images: torch.Tensor
    labels: torch.Tensor


def seed_of(*numbers: int) -> int:
    """A seed that follows from these numbers alone."""
    return int(numpy.random.SeedSequence(numbers).generate_state(1, numpy.uint64)[0])


class Feed:
    """The batches of one rank, for the thread that trains. Another place or share restarts the reading."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._images = _TrainingImages(settings)
        self.classes = self._images.folder.classes
        self.size = len(self._images.folder)
        self._expected: tuple[Place, Share] | None = None
        self._batches: Iterator[list[torch.Tensor]] = iter(())
        self._order = numpy.empty(0, int)

    def fits(self, place: Place, share: Share) -> bool:
        """Tells if enough of the epoch is left for a step."""
        return place.used + share.parts * share.images <= self.size

    def next(self, place: Place, share: Share) -> Batch:
        """This rank's part of the step at `place`."""
        if self._expected != (place, share):
            self._start(place, share)
        taken = share.parts * share.images
        self._expected = (place.after(taken), share)
        images, labels = next(self._batches)
        return Batch(self._ids(place.used, share), images, labels)

    def _start(self, place: Place, share: Share) -> None:
        seed = (self.settings.seed, place.epoch)
        self._order = numpy.random.default_rng(seed).permutation(self.size)
        taken = share.parts * share.images
        starts = range(place.used, self.size - taken + 1, taken)
        loader = DataLoader(
            self._images,
            batch_sampler=[[(place.epoch, sample) for sample in self._ids(start, share)] for start in starts],
            num_workers=self.settings.workers,
            pin_memory=torch.cuda.is_available(),
            # Its own draws would be taken from the one of dropout.
            generator=torch.Generator(),
            worker_init_fn=_die_with_the_rank,
        )
        self._batches = iter(loader)

    def _ids(self, used: int, share: Share) -> list[int]:
        first = used + share.part * share.images
        return self._order[first : first + share.images].tolist()


class _TrainingImages(Dataset):
    """DIR/train by (epoch, sample), cropped and flipped by a generator of that pair's own."""

    def __init__(self, settings: Settings) -> None:
        self.folder = _folder(settings.data / "train")
        self.seed = settings.seed
        self.transform = transforms.Compose(
            [
                transforms.RandomResizedCrop(settings.image_size),
                transforms.RandomHorizontalFlip(),
                transforms.ToTensor(),
                NORMALIZE,
            ]
        )

    def __getitem__(self, key: tuple[int, int]) -> tuple[torch.Tensor, int]:
        epoch, sample = key
        image, label = self.folder[sample]
        # The transforms draw from torch's generator of the processor, and dropout after them does, too.
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed_of(self.seed, epoch, sample))
            return self.transform(image), label


def validation_batches(settings: Settings, classes: list[str], share: Share) -> DataLoader:
    """This rank's part of DIR/val, whose classes must be those of DIR/train."""
    transform = transforms.Compose(
        [
            transforms.Resize(round(settings.image_size * MARGIN)),
            transforms.CenterCrop(settings.image_size),
            transforms.ToTensor(),
            NORMALIZE,
        ]
    )
    folder = _folder(settings.data / "val", transform)
    if folder.classes != classes:
        strange = sorted(set(folder.classes) ^ set(classes))
        raise SettingsError(
            f"{settings.data}/train and {settings.data}/val hold different classes, {strange[0]} among them: "
            "a class is a folder of each; ImageNet's val is sorted by python -m trainer.ddp.imagenet_val"
        )
    part = Subset(folder, range(share.part, len(folder), share.parts))
    return DataLoader(
        part,
        batch_size=share.images,
        num_workers=settings.workers,
        worker_init_fn=_die_with_the_rank,
    )


def _die_with_the_rank(_worker: int) -> None:
    """A reader holds copies of its rank's connections, by whose end the other ranks learn of a death."""
    die_with_the_launcher()


def _folder(path: Path, transform: transforms.Compose | None = None) -> ImageFolder:
    try:
        return ImageFolder(str(path), transform)
    except FileNotFoundError as error:
        raise SettingsError(
            f"{path}: found no folder of classes with images in it ({str(error).splitlines()[0]}): give the "
            "folder that holds train/CLASS/IMAGE and val/CLASS/IMAGE"
        ) from None
