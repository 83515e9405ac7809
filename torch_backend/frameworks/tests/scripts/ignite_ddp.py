"""Ignite's launcher of a script that torchrun has started, which takes a backend by a list of names."""

import ignite.distributed as idist
import small
import torch
from ignite.engine import Engine


def train(_local_rank: int) -> None:
    model = idist.auto_model(small.model())
    optimizer = idist.auto_optim(torch.optim.AdamW(model.parameters(), lr=0.02))
    losses = []

    def step(_engine, batch):
        inputs, wanted = batch
        optimizer.zero_grad()
        loss = (model(inputs) - wanted).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(idist.all_gather(loss.detach().reshape(1)).mean().item())

    batches = [small.batch(each, idist.get_rank()) for each in range(small.STEPS)]
    Engine(step).run(batches, max_epochs=1)
    small.report(losses)


with idist.Parallel(backend="gloo") as parallel:
    parallel.run(train)
