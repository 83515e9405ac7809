"""The classifiers that the trainer makes: those of torchvision, for images of the size that is asked for."""

import re

import pytest
import torch

pytest.importorskip("torchvision")

from torchvision import models

from trainer.ddp.arguments import Settings, SettingsError, parse
from trainer.ddp.data import Batch, Place
from trainer.ddp.model import Learner, build_model
from trainer.ddp.training import device_for, train

CLASSES = 4
FAMILIES = {re.match(r"[a-z]+(_v\d)?", arch)[0]: arch for arch in models.list_models(module=models)}
"""One classifier of each kind, by the beginning of its name."""


def settings_for(arch: str, *words: str) -> Settings:
    return parse(["images", "--arch", arch, *words])


@pytest.mark.slow
@pytest.mark.parametrize("arch", FAMILIES.values(), ids=list(FAMILIES))
def test_a_classifier_of_every_kind_takes_a_step(arch: str) -> None:
    # Without memory: shapes and calls are those of a step, and no number is computed.
    settings = settings_for(arch)
    # RegNet computes its widths by tensors.
    with torch.device("cpu" if arch.startswith("regnet_") else "meta"):
        model = build_model(settings, CLASSES)
    with torch.device("meta"):
        learner = Learner(settings, model, torch.device("meta"))
        size = settings.image_size
        batch = Batch([], torch.zeros(2, 3, size, size), torch.zeros(2, dtype=torch.int64))
        learner.gradients(batch, Place(), rank=0)
        learner.update(Place())
    gradients = [each.grad is not None for each in learner.model.parameters()]
    assert gradients and all(gradients)


@pytest.mark.parametrize("arch", ["vit_b_32", "resnet18"])
def test_a_classifier_is_made_for_images_of_the_size_that_is_asked_for(arch: str) -> None:
    with torch.device("meta"):
        model = build_model(settings_for(arch, "--image-size", "64"), CLASSES)
        assert model(torch.zeros(2, 3, 64, 64)).shape == (2, CLASSES)


@pytest.mark.parametrize(("size", "outputs"), [("298", 1), ("299", 2)])
def test_inception_has_its_auxiliary_output_for_images_that_are_large_enough(size: str, outputs: int) -> None:
    with torch.device("meta"):
        model = build_model(settings_for("inception_v3", "--image-size", size), CLASSES)
        made = model(torch.zeros(2, 3, int(size), int(size)))
    assert [each.shape for each in (made if isinstance(made, tuple) else [made])] == outputs * [(2, CLASSES)]


def test_a_size_that_a_classifier_cannot_have_is_refused() -> None:
    with pytest.raises(SettingsError, match="--arch vit_b_32 --image-size 65"), torch.device("meta"):
        build_model(settings_for("vit_b_32", "--image-size", "65"), CLASSES)


def test_dropout_has_the_probability_that_is_asked_for_or_is_refused() -> None:
    with torch.device("meta"):
        model = build_model(settings_for("alexnet", "--dropout", "0.25"), CLASSES)
        with pytest.raises(SettingsError, match=r"--dropout 0\.25: resnet18"):
            build_model(settings_for("resnet18", "--dropout", "0.25"), CLASSES)
    assert [each.p for each in model.modules() if isinstance(each, torch.nn.Dropout)] == [0.25, 0.25]


def test_an_unknown_classifier_is_refused_with_names_of_known_ones() -> None:
    with pytest.raises(SettingsError, match="no such classifier; it has alexnet"):
        build_model(settings_for("resnet19"), CLASSES)


@pytest.mark.parametrize("words", ["--precision amp", "--dist-backend nccl"])
def test_what_needs_a_gpu_is_refused_where_there_is_none(words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(SettingsError, match=f"{words} needs a GPU"):
        device_for(settings_for("resnet18", *words.split()))


def test_recovery_in_the_process_is_refused_outside_of_replicas() -> None:
    with pytest.raises(SettingsError, match=r"python -m trainer\.replicas"):
        train(settings_for("resnet18", "--recovery", "in-process"))
