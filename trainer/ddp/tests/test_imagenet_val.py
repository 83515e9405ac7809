"""ImageNet's validation images are sorted into classes, all or none."""

from pathlib import Path

import pytest

from trainer.ddp.imagenet_val import main

ANNOTATION = "<annotation><object><name>{0}</name></object><object><name>{0}</name></object></annotation>"


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    images, annotations = tmp_path / "val", tmp_path / "annotations"
    images.mkdir()
    annotations.mkdir()
    for number, name in enumerate(["n01", "n02", "n01"]):
        (images / f"ILSVRC2012_val_{number}.JPEG").write_text(f"image {number}")
        (annotations / f"ILSVRC2012_val_{number}.xml").write_text(ANNOTATION.format(name))
    return images, annotations


def test_each_image_goes_into_the_folder_of_its_class(folders: tuple[Path, Path]) -> None:
    images, annotations = folders
    assert main([str(images), str(annotations)]) == 0
    found = {path.relative_to(images).as_posix(): path.read_text() for path in images.rglob("*.JPEG")}
    assert found == {
        "n01/ILSVRC2012_val_0.JPEG": "image 0",
        "n02/ILSVRC2012_val_1.JPEG": "image 1",
        "n01/ILSVRC2012_val_2.JPEG": "image 2",
    }


def test_an_image_without_annotation_is_named_and_nothing_moves(
    folders: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    images, annotations = folders
    (annotations / "ILSVRC2012_val_1.xml").unlink()
    assert main([str(images), str(annotations)]) == 2
    assert "ILSVRC2012_val_1.xml" in capsys.readouterr().err
    assert sorted(path.name for path in images.iterdir()) == [
        f"ILSVRC2012_val_{number}.JPEG" for number in range(3)
    ]


def test_an_annotation_of_two_classes_is_refused(
    folders: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    images, annotations = folders
    two = "<annotation><object><name>n01</name></object><object><name>n02</name></object></annotation>"
    (annotations / "ILSVRC2012_val_0.xml").write_text(two)
    assert main([str(images), str(annotations)]) == 2
    assert "names 2 classes" in capsys.readouterr().err
