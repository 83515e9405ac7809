"""One rank of trainer.fsdp in a replica: its shards, and the steps that train them."""

from typing import Any

import torch
import torch.distributed as dist

from trainer.fsdp import data
from trainer.fsdp.arguments import Settings
from trainer.fsdp.model import empty_model, next_token_loss
from trainer.fsdp.optimizer import clip_gradients, make_optimizer
from trainer.fsdp.schedule import learning_rate
from trainer.fsdp.sharding import shard_model
from trainer.replicas import state
from trainer.replicas.arguments import among
from trainer.replicas.replica import Berth, Replica


class Shard:
    """One rank's shards of the model and of the optimizer's state; its main thread trains them."""

    def __init__(self, settings: Settings, berth: Berth) -> None:
        self.settings = settings
        self.corpus = data.read_corpus(settings, data.tokenizer_for(settings))
        self.model = shard_model(empty_model(settings), settings, torch.device("cpu"))
        self.optimizer = make_optimizer(settings, list(self.model.parameters()))
        self.replica = Replica(berth, self)

    def state_dict(self) -> dict[str, Any]:
        return state.state_of(self.model, self.optimizer)

    def load_state_dict(self, taken: dict[str, Any]) -> None:
        state.load(taken, self.model, self.optimizer)

    def digest(self) -> str:
        return state.digest(self.model)

    def run(self) -> None:
        """Trains to the last step, in whatever company there is."""
        self.replica.train(self._try_step)

    def _try_step(self) -> bool:
        if self.replica.step >= self.settings.steps:
            return False
        loss = self._gradients()
        gradients = [state.local(each.grad) for each in self.model.parameters() if each.grad is not None]
        loss = self.replica.average(gradients, loss)
        if self.replica.may_commit():
            self._update()
            self.replica.record(loss)
        self.optimizer.zero_grad()
        return True

    def _gradients(self) -> float:
        place = self.replica.part * dist.get_world_size() + dist.get_rank()
        settings = among(self.settings, self.replica.participants)
        batch = data.training_batch(self.corpus, settings, self.replica.step + 1, place)
        total = 0.0
        for sequences in batch:
            loss = next_token_loss(self.model, sequences) / len(batch)
            loss.backward()
            total += loss.item()
        return total

    def _update(self) -> None:
        settings = self.settings
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate(self.replica.step, settings.lr, settings.warmup, settings.decay_steps)
        clip_gradients(self.model, settings.clip)
        self.optimizer.step()
