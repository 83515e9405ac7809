"""One rank of a measured run: `python -m trainer.scaling.rank SECONDS ARGUMENT...`, trainer.fsdp that
tells what it held.
"""

import json
import sys
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.tensor import DTensor

from trainer.fsdp.arguments import PROGRAM, Settings, SettingsError, parse
from trainer.fsdp.interrupt import INTERRUPTED, Interrupt, die_with_the_launcher
from trainer.fsdp.training import Trainer, train
from trainer.scaling.sleeping import let_blocks_sleep

LEFT = "measured.json"


def main(words: list[str]) -> int:
    """The exit status of this rank."""
    interrupt = Interrupt()
    die_with_the_launcher()
    compute = float(words[0])

    class Measured(Trainer):
        def __init__(self, settings: Settings, interrupt: Interrupt, device: torch.device) -> None:
            super().__init__(settings, interrupt, device)
            if compute:
                let_blocks_sleep(self.model, compute / settings.grad_accum)

        def run(self) -> bool:
            finished = super().run()
            facts = {"state_bytes_per_rank": _most_state(self), "epoch_tokens": len(self.corpus.training)}
            if self.report:
                (self.folder / LEFT).write_text(json.dumps(facts) + "\n")
            return finished

    try:
        return 0 if train(parse(words[1:]), interrupt, Measured) else INTERRUPTED
    except SettingsError as error:
        print(f"{PROGRAM}: {error}", file=sys.stderr)
        return 2


def _most_state(trainer: Trainer) -> int:
    """Bytes of parameters and of the optimizer's state on the rank that holds the most."""
    parameters = list(trainer.model.parameters())
    kept = [*parameters, *(value for state in trainer.optimizer.state.values() for value in state.values())]
    most = torch.tensor(sum(map(_local_bytes, kept)), dtype=torch.int64)
    dist.all_reduce(most, dist.ReduceOp.MAX)
    return int(most.item())


def _local_bytes(value: Any) -> int:
    if not isinstance(value, torch.Tensor):
        return 0
    local = value.to_local() if isinstance(value, DTensor) else value
    return local.numel() * local.element_size()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
