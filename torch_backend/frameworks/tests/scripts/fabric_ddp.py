"""Fabric of Lightning by its own choice of a backend, which is Gloo on a CPU."""

import small
import torch
from lightning_fabric import Fabric

fabric = Fabric(accelerator="cpu", strategy="ddp", devices=2)
fabric.launch()
module = small.model()
model, optimizer = fabric.setup(module, torch.optim.AdamW(module.parameters(), lr=0.02))
losses = []
for step in range(small.STEPS):
    inputs, wanted = small.batch(step, fabric.global_rank)
    loss = (model(inputs) - wanted).square().mean()
    fabric.backward(loss)
    optimizer.step()
    optimizer.zero_grad()
    losses.append(fabric.all_gather(loss.detach()).mean().item())
small.report(losses)
torch.distributed.destroy_process_group()
