"""AWS's lines for SMP v2 behind SMDDP, whose process group is made first."""

import torch.distributed as dist
import smdistributed.dataparallel.torch.torch_smddp

dist.init_process_group(backend="smddp")

import torch.sagemaker as tsm

tsm.init()

import small_llama

assert dist.get_backend() == "smddp"
model = small_llama.shard(small_llama.make())
small_llama.report(model)
