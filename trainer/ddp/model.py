"""The classifier, the loss, and one step of training with what it needs in an explicit state."""

import hashlib
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
import torchvision
from torch import nn
from torch.nn import functional

from trainer.ddp.arguments import Settings, SettingsError
from trainer.ddp.data import Batch, Place, seed_of

# torchvision's papers weigh the outputs that only training has so.
AUXILIARY_WEIGHT = 0.3
EPOCHS_PER_DECAY = 30
INCEPTION_SIZE = 299
"""Of smaller images too little is left for Inception's auxiliary output."""


def build_model(settings: Settings, classes: int) -> nn.Module:
    """The same weights on every rank, which follow from the seed."""
    known = torchvision.models.list_models(module=torchvision.models)
    if settings.arch not in known:
        raise SettingsError(
            f"--arch {settings.arch}: torchvision {torchvision.__version__} has no such classifier; it has "
            f"{', '.join(known[:3])} ... {', '.join(known[-2:])}"
        )
    torch.manual_seed(settings.seed)
    try:
        model = torchvision.models.get_model(
            settings.arch, weights=None, num_classes=classes, **_options(settings)
        )
    except (AssertionError, ValueError) as error:
        raise SettingsError(f"--arch {settings.arch} --image-size {settings.image_size}: {error}") from error
    if settings.dropout is not None:
        _set_dropout(model, settings)
    return model.double() if settings.precision == "fp64" else model


def _options(settings: Settings) -> dict[str, Any]:
    """Gives what a classifier must be told beside its name; some are made for images of one size."""
    if settings.arch == "googlenet":
        return {"init_weights": True}
    if settings.arch == "inception_v3":
        return {"init_weights": True, "aux_logits": settings.image_size >= INCEPTION_SIZE}
    if settings.arch.startswith("vit_"):
        return {"image_size": settings.image_size}
    if settings.arch.startswith("maxvit_"):
        return {"input_size": (settings.image_size, settings.image_size)}
    return {}


def _set_dropout(model: nn.Module, settings: Settings) -> None:
    layers = [each for each in model.modules() if isinstance(each, nn.Dropout)]
    if not layers:
        raise SettingsError(f"--dropout {settings.dropout}: {settings.arch} has no dropout: leave it out")
    for layer in layers:
        layer.p = settings.dropout


class Learner:
    """Model and optimizer of one rank, for the thread that trains; `forward` may average gradients."""

    def __init__(self, settings: Settings, model: nn.Module, device: torch.device) -> None:
        self.settings = settings
        self.device = device
        self.model = model.to(device)
        self.forward: nn.Module = self.model
        self.dtype = torch.float64 if settings.precision == "fp64" else torch.float32
        self.optimizer = torch.optim.SGD(
            model.parameters(), settings.lr, settings.momentum, weight_decay=settings.weight_decay
        )

    def gradients(self, batch: Batch, place: Place, rank: int) -> torch.Tensor:
        """Forward and backward: leaves the gradients, averaged where a wrapper does so; returns the loss."""
        # Dropout of a step is the same after a restart.
        torch.manual_seed(seed_of(self.settings.seed, place.step, rank))
        self.forward.train()
        self.optimizer.zero_grad(set_to_none=True)
        with self._autocast():
            outputs = self.forward(batch.images.to(self.device, self.dtype))
            loss = _loss(outputs, batch.labels.to(self.device))
        loss.backward()
        return loss.detach()

    def update(self, place: Place) -> None:
        """Lets the optimizer use the gradients."""
        rate = self.settings.lr * 0.1 ** (place.epoch // EPOCHS_PER_DECAY)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.step()

    @torch.no_grad()
    def judge(self, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """How many images there are, and how many have their label first and among the first five."""
        self.model.eval()
        with self._autocast():
            outputs = self.model(images.to(self.device, self.dtype))
        best = outputs.topk(min(5, outputs.shape[1]), dim=1).indices
        hits = best == labels.to(self.device).unsqueeze(1)
        counts = [len(labels), int(hits[:, :1].sum()), int(hits.sum())]
        return torch.tensor(counts, dtype=torch.float64, device=self.device)

    def state_dict(self) -> dict[str, Any]:
        return {"state_dict": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.model.load_state_dict(state["state_dict"])
        self.optimizer.load_state_dict(state["optimizer"])

    def weights_sha256(self) -> str:
        """A hash of every tensor's name and bytes, in the order of the state."""
        digest = hashlib.sha256()
        for name, tensor in self.model.state_dict().items():
            digest.update(name.encode())
            digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
        return digest.hexdigest()

    def _autocast(self) -> AbstractContextManager[Any]:
        if self.settings.precision != "amp":
            return nullcontext()
        return torch.autocast(self.device.type, torch.bfloat16)


def _loss(outputs: Any, labels: torch.Tensor) -> torch.Tensor:
    if isinstance(outputs, torch.Tensor):
        return functional.cross_entropy(outputs, labels)
    # Some models return auxiliary outputs beside their own while they train.
    own, *auxiliary = (functional.cross_entropy(each, labels) for each in outputs)
    return own + AUXILIARY_WEIGHT * sum(auxiliary)
