"""Accelerate on CPU, which takes Gloo by itself."""

import small
import torch
from accelerate import Accelerator

accelerator = Accelerator(cpu=True)
model = small.model()
optimizer = torch.optim.AdamW(model.parameters(), lr=0.02)
loader = torch.utils.data.DataLoader(small.samples(), batch_size=small.PER_RANK)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
losses = []
for inputs, wanted in loader:
    loss = (model(inputs) - wanted).square().mean()
    accelerator.backward(loss)
    accelerator.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    losses.append(accelerator.gather(loss.detach().reshape(1)).mean().item())
small.report(losses)
accelerator.end_training()
