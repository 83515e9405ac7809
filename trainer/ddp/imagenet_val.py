"""Sorts ImageNet's validation images into a folder per class.

Called as `python -m trainer.ddp.imagenet_val FOLDER ANNOTATIONS`.
FOLDER holds ILSVRC2012_val_00000001.JPEG and so on, ANNOTATIONS the .xml file of each image.
"""

import argparse
import sys
from pathlib import Path
from xml.etree import ElementTree


class AnnotationError(Exception):
    """An image whose class cannot be found; its text says why."""


def class_of(annotation: Path) -> str:
    """The class that an annotation names: a WordNet id such as n01751748."""
    try:
        names = {name.text for name in ElementTree.parse(annotation).iterfind("object/name") if name.text}
    except OSError as error:
        raise AnnotationError(
            f"{annotation}: {error.strerror}; the annotations are in ILSVRC2012_bbox_val"
        ) from None
    except ElementTree.ParseError as error:
        raise AnnotationError(f"{annotation}: it is not XML ({error})") from None
    if len(names) != 1:
        raise AnnotationError(f"{annotation}: it names {len(names)} classes, and one is needed")
    return names.pop()


def sort_images(folder: Path, annotations: Path) -> int:
    """Moves each image into the folder of its class, once all classes are known; returns how many."""
    images = sorted(each for each in folder.iterdir() if each.suffix.lower() in (".jpeg", ".jpg", ".png"))
    classes = [class_of(annotations / f"{image.stem}.xml") for image in images]
    for image, name in zip(images, classes, strict=True):
        place = folder / name
        place.mkdir(exist_ok=True)
        image.rename(place / image.name)
    return len(images)


def main(words: list[str]) -> int:
    """The exit status."""
    parser = argparse.ArgumentParser(prog="trainer.ddp.imagenet_val", description=__doc__)
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="with the images; they are moved in it")
    parser.add_argument(
        "annotations", type=Path, metavar="ANNOTATIONS", help="a folder with IMAGE.xml of each"
    )
    order = parser.parse_args(words)
    try:
        count = sort_images(order.folder, order.annotations)
    except (AnnotationError, OSError) as error:
        print(f"trainer.ddp.imagenet_val: {error}", file=sys.stderr)
        return 2
    print(f"{order.folder}: {count} images sorted into classes")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
