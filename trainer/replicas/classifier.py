"""One rank of trainer.ddp in a replica: the classifier, and the steps that train it."""

import copy
import os
from dataclasses import asdict
from typing import Any

import torch
import torch.distributed as dist

from trainer.ddp import checkpoint
from trainer.ddp.arguments import Settings, SettingsError
from trainer.ddp.data import Feed, Place, Share
from trainer.ddp.model import Learner, build_model
from trainer.ddp.peers import FixedPeers
from trainer.ddp.record import History
from trainer.replicas import state
from trainer.replicas.replica import Berth, Replica


def refuse_what_cannot_train(settings: Settings) -> None:
    """SettingsError for a model or images by which no rank could make a step."""
    feed = Feed(settings)
    build_model(settings, len(feed.classes))
    if not feed.fits(Place(), Share(0, 1, settings.batch_of_a_rank(1))):
        raise SettingsError(
            f"{settings.data}/train has {feed.size} images, and a step takes {settings.global_batch}: "
            "choose a smaller --global-batch"
        )


class Classifier:
    """Made and used by the main thread. DistributedDataParallel averages in a replica, torchft among them."""

    def __init__(self, settings: Settings, berth: Berth) -> None:
        self.settings = settings
        self.feed = Feed(settings)
        model = build_model(settings, len(self.feed.classes))
        self.learner = Learner(settings, model, torch.device("cpu"))
        FixedPeers(settings).wrap(self.learner)
        self.place = Place()
        self.replica = Replica(berth, self)

    def state_dict(self) -> dict[str, Any]:
        return {"learner": copy.deepcopy(self.learner.state_dict()), "place": asdict(self.place)}

    def load_state_dict(self, taken: dict[str, Any]) -> None:
        self.learner.load_state_dict(taken["learner"])
        self.place = Place(**taken["place"])

    def digest(self) -> str:
        return state.digest(self.learner.model)

    def run(self) -> None:
        """Trains to the last step, in whatever company there is."""
        self.replica.train(self._try_step)

    def _share(self) -> Share:
        ranks = self.replica.participants * dist.get_world_size()
        part = self.replica.part * dist.get_world_size() + dist.get_rank()
        return Share(part, ranks, self.settings.batch_of_a_rank(ranks))

    def _is_done(self) -> bool:
        return self.place.epoch >= self.settings.epochs or self.place.step == self.settings.steps

    def _try_step(self) -> bool:
        share = self._share()
        if not self.feed.fits(self.place, share):
            self.place = self.place.in_next_epoch()
        if self._is_done():
            self._save()
            return False
        batch = self.feed.next(self.place, share)
        loss = self.learner.gradients(batch, self.place, share.part).item()
        gradients = [each.grad for each in self.learner.model.parameters() if each.grad is not None]
        loss = self.replica.average(gradients, loss)
        if self.replica.may_commit():
            self.learner.update(self.place)
            self.place = self.place.after(share.parts * share.images)
            self.replica.record(loss)
        return True

    def _save(self) -> None:
        """Leaves what trainer.ddp can go on from; all replicas write the same."""
        if os.environ.get("LOCAL_RANK", "0") == "0":
            described = {"arch": self.settings.arch, "seed": self.settings.seed, "best_acc1": 0.0}
            described |= {"history": History().state_dict(), **asdict(self.place)}
            checkpoint.save(self.settings.checkpoint_file, described | self.learner.state_dict())
