"""The ranks that train together: how they share a step, and how they sum what each of them has."""

from typing import Protocol

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from trainer.ddp.arguments import Settings
from trainer.ddp.data import Batch, Place, Share
from trainer.ddp.model import Learner


class Peers(Protocol):
    """The trainer's view of the other ranks; used by the thread that trains."""

    def wrap(self, learner: Learner) -> nn.Module:
        """A module whose backward averages the gradients of all ranks; the learner's state is as before."""

    def begin_step(self) -> Share:
        """This rank's share of the next step."""

    def may_update(self) -> bool:
        """Tells if all ranks have the gradients of this step; if not, the step is done once more."""

    def total(self, tensor: torch.Tensor) -> torch.Tensor:
        """The sum over all ranks."""

    def align_buffers(self, model: nn.Module) -> None:
        """Gives every rank the buffers of the first, as DistributedDataParallel does before each step."""


class FixedPeers:
    """The default process group: if one of its ranks fails, all of them end and torchrun starts them anew."""

    def __init__(self, settings: Settings) -> None:
        ranks = dist.get_world_size()
        self._share = Share(dist.get_rank(), ranks, settings.batch_of_a_rank(ranks))

    def wrap(self, learner: Learner) -> nn.Module:
        devices = None if learner.device.type == "cpu" else [learner.device]
        wrapped = DistributedDataParallel(learner.model, device_ids=devices)
        learner.forward = wrapped
        _settle_buckets(learner)
        return wrapped

    def begin_step(self) -> Share:
        return self._share

    def may_update(self) -> bool:
        return True

    def total(self, tensor: torch.Tensor) -> torch.Tensor:
        summed = tensor.clone()
        dist.all_reduce(summed)
        return summed

    def align_buffers(self, model: nn.Module) -> None:
        for buffer in model.buffers():
            dist.broadcast(buffer, 0)


def _settle_buckets(learner: Learner) -> None:
    """Does a step that changes nothing.

    DistributedDataParallel puts its buckets in order after the first step. The order decides how gradients
    are summed, so a restarted run would differ in a bit from one that was not.
    """
    before = {name: tensor.clone() for name, tensor in learner.model.state_dict().items()}
    size = learner.settings.image_size
    blank = Batch([], torch.zeros(2, 3, size, size), torch.zeros(2, dtype=torch.int64))
    learner.gradients(blank, Place(), rank=0)
    learner.optimizer.zero_grad(set_to_none=True)
    learner.model.load_state_dict(before)
