"""One rank under torchrun, which trains by FSDP2 and by DistributedDataParallel."""

import torch.distributed as dist
from pair import train_both_ways

dist.init_process_group("fccl")
train_both_ways(dist.get_rank())
dist.destroy_process_group()
