"""A folder of small images of four colours, in the layout that the trainer reads."""

from pathlib import Path

import numpy
from PIL import Image

COLOURS = {"blue": (40, 60, 200), "green": (40, 180, 60), "red": (200, 40, 40), "yellow": (220, 210, 50)}


def four_colours(folder: Path, each: int, size: int = 40) -> Path:
    """Makes `each` training images of every colour, and half as many to validate; no two are alike."""
    for part, count in (("train", each), ("val", each // 2)):
        for name, colour in COLOURS.items():
            place = folder / part / name
            place.mkdir(parents=True)
            for number in range(count):
                random = numpy.random.default_rng((len(part), colour[0], number))
                noise = random.normal(colour, 40, (size, size, 3)).clip(0, 255).astype(numpy.uint8)
                Image.fromarray(noise).save(place / f"{number}.png")
    return folder
