"""One rank of one replica, under torchrun.

Called as `python -m trainer.replicas.rank FOLDER REPLICA ARGUMENT...`, with trainer.replicas' arguments.
"""

import sys
from pathlib import Path

import torch.distributed as dist

from trainer.cores import use_fair_share_of_cores
from trainer.fsdp.interrupt import die_with_the_launcher
from trainer.replicas.arguments import FSDP, Order, ddp_settings, fsdp_settings, parse
from trainer.replicas.replica import Berth


def main(words: list[str]) -> None:
    """Trains one rank."""
    die_with_the_launcher()
    order = parse(words[2:])
    berth = Berth(Path(words[0]), int(words[1]), order.replicas)
    use_fair_share_of_cores(order.replicas * order.nproc_per_node)
    dist.init_process_group("fccl")
    _train(order, berth)
    dist.destroy_process_group()


def _train(order: Order, berth: Berth) -> None:
    # Imported here because one trainer does not need the other's libraries.
    if order.module == FSDP:
        from trainer.replicas.shard import Shard

        Shard(fsdp_settings(order), berth).run()
    else:
        from trainer.replicas.classifier import Classifier

        Classifier(ddp_settings(order), berth).run()


if __name__ == "__main__":
    main(sys.argv[1:])
