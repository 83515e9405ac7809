"""Accelerate under its SageMaker switches, which take the backend "smddp"; STRATEGY is ddp, fsdp or fsdp2."""

import os

import small
import torch
from accelerate import Accelerator, FullyShardedDataParallelPlugin

# A process group that exists is what Accelerate takes.
if small.backend() == "gloo":
    torch.distributed.init_process_group("gloo")
versions = {"fsdp": 1, "fsdp2": 2}
strategy = os.environ["STRATEGY"]
plugin = None
if strategy in versions:
    plugin = FullyShardedDataParallelPlugin(
        fsdp_version=versions[strategy],
        auto_wrap_policy="size_based_wrap",
        min_num_params=100,
        use_orig_params=True if strategy == "fsdp" else None,
    )
accelerator = Accelerator(fsdp_plugin=plugin)
model = small.model()
optimizer = torch.optim.AdamW(model.parameters(), lr=0.02)
loader = torch.utils.data.DataLoader(small.samples(), batch_size=small.PER_RANK)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
losses = []
for inputs, wanted in loader:
    loss = (model(inputs) - wanted).square().mean()
    accelerator.backward(loss)
    optimizer.step()
    optimizer.zero_grad()
    losses.append(accelerator.gather(loss.detach().reshape(1)).mean().item())
small.report(losses)
accelerator.end_training()
