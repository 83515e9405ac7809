"""One rank of one replica: `python -m trainer.replicas.rank FOLDER REPLICA REPLICAS ARGUMENT...`, under
torchrun.
"""

import json
import os
import sys
import time
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from fccl.torchft import ProcessGroupFccl
from torchft import Manager

from trainer.fsdp import data
from trainer.fsdp.arguments import Settings, parse
from trainer.fsdp.interrupt import die_with_the_launcher
from trainer.fsdp.model import empty_model, next_token_loss
from trainer.fsdp.optimizer import clip_gradients, make_optimizer
from trainer.fsdp.schedule import learning_rate
from trainer.fsdp.sharding import shard_model
from trainer.fsdp.training import use_fair_share_of_cores
from trainer.replicas.arguments import among
from trainer.replicas.state import digest, load, local, state_of

PATIENCE = timedelta(seconds=60)
"""For one call among replicas; a death is known long before."""
FINISHED = "finished"
STARTS, METRICS = "starts.jsonl", "metrics.jsonl"


class Replica:
    """One rank; made and used by its main thread, but torchft's thread reads its state while that thread
    waits.
    """

    def __init__(self, settings: Settings, folder: Path, replica: int, replicas: int) -> None:
        self.settings, self.folder, self.replicas = settings, folder / f"replica-{replica}", replicas
        self.rank = dist.get_rank()
        _append(self.folder / STARTS, {"rank": self.rank, "pid": os.getpid(), "time": time.time()})
        self.corpus = data.read_corpus(settings, data.tokenizer_for(settings))
        self.model = shard_model(empty_model(settings), settings, torch.device("cpu"))
        self.optimizer = make_optimizer(settings, list(self.model.parameters()))
        self.manager = Manager(
            pg=ProcessGroupFccl(timeout=PATIENCE),
            load_state_dict=lambda state: load(state, self.model, self.optimizer),
            state_dict=lambda: state_of(self.model, self.optimizer),
            min_replica_size=1,
            use_async_quorum=False,
            init_sync=False,  # the seed gives all replicas the same first weights
            timeout=PATIENCE,
            replica_id=f"replica-{replica}",
        )

    def run(self) -> None:
        """Trains to the last step, in whatever company there is."""
        finished = self.folder.parent / FINISHED
        while self.manager.current_step() < self.settings.steps and not finished.exists():
            self._try_step()
        finished.touch()
        self.manager.shutdown(wait=False)

    def _try_step(self) -> None:
        """One step, which is done again by the next call if a replica has died in it."""
        begin = time.perf_counter()
        self.manager.start_quorum()
        if self.manager.current_step() == 0 and self.manager.num_participants() < self.replicas:
            # Replicas that do not start together would train apart until they meet.
            self.manager.report_error(RuntimeError("not all replicas have started"))
            self.manager.should_commit()
            time.sleep(0.1)
            return
        step = self.manager.current_step() + 1
        participants = self.manager.num_participants()
        loss = self._average(self._gradients(step, participants))
        if self.manager.should_commit():
            self._update(step)
            self._report(step, participants, loss, time.perf_counter() - begin)
        self.optimizer.zero_grad()

    def _gradients(self, step: int, participants: int) -> float:
        place = self.manager.participating_rank() * dist.get_world_size() + self.rank
        batch = data.training_batch(self.corpus, among(self.settings, participants), step, place)
        total = 0.0
        for sequences in batch:
            loss = next_token_loss(self.model, sequences) / len(batch)
            loss.backward()
            total += loss.item()
        return total

    def _average(self, loss: float) -> float:
        """Means over the replicas, of the gradients in their place and of the loss; nothing of use after
        a death.
        """
        gradients = [local(each.grad) for each in self.model.parameters() if each.grad is not None]
        joined = torch.cat([*(each.flatten() for each in gradients), gradients[0].new_tensor([loss])])
        self.manager.allreduce(joined).wait()
        for gradient, mean in zip(
            gradients, joined.split([each.numel() for each in gradients] + [1]), strict=False
        ):
            gradient.copy_(mean.view_as(gradient))
        return joined[-1].item()

    def _update(self, step: int) -> None:
        settings = self.settings
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate(step, settings.lr, settings.warmup, settings.decay_steps)
        clip_gradients(self.model, settings.clip)
        self.optimizer.step()

    def _report(self, step: int, participants: int, loss: float, seconds: float) -> None:
        mean = torch.tensor(loss, dtype=torch.float64)
        dist.all_reduce(mean)
        line = {"step": step, "rank": self.rank, "pid": os.getpid(), "participants": participants}
        line |= {"loss": mean.item() / dist.get_world_size(), "seconds": seconds, "time": time.time()}
        _append(self.folder / METRICS, line | {"digest": digest(self.model)})


def _append(file: Path, line: dict[str, object]) -> None:
    # Ranks of a replica share a file: one write a line.
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    try:
        os.write(descriptor, f"{json.dumps(line)}\n".encode())
    finally:
        os.close(descriptor)


def main(words: list[str]) -> None:
    """Trains one rank."""
    die_with_the_launcher()
    use_fair_share_of_cores()
    dist.init_process_group("fccl")
    Replica(parse(words[3:]), Path(words[0]), int(words[1]), int(words[2])).run()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1:])
