"""Lightning's Trainer with the strategy named STRATEGY and the backend of choice."""

import os

import pytorch_lightning as lightning
import small
import torch
from pytorch_lightning.strategies import DDPStrategy, FSDPStrategy, ModelParallelStrategy
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard


class FSDPOnCpu(FSDPStrategy):
    """Lightning refuses its own class on a CPU by its type, and asks no subclass."""


class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.model = small.model()
        self.losses = []

    def configure_model(self):
        if isinstance(self.trainer.strategy, ModelParallelStrategy):
            fully_shard(self.model, mesh=self.device_mesh["data_parallel"])
        if isinstance(self.trainer.strategy, FSDPStrategy):
            # Lightning would name no device, and torch takes the GPU then.
            self.model = FullyShardedDataParallel(
                self.model, device_id=torch.device("cpu"), use_orig_params=True
            )

    def training_step(self, batch, _index):
        inputs, wanted = batch
        loss = (self.model(inputs) - wanted).square().mean()
        self.losses.append(self.all_gather(loss.detach()).mean().item())
        return loss

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=0.02)


def strategy_named(name):
    if name == "ddp":
        return DDPStrategy(process_group_backend=small.backend())
    if name == "fsdp":
        return FSDPOnCpu(process_group_backend=small.backend())
    return ModelParallelStrategy(
        data_parallel_size=2, tensor_parallel_size=1, process_group_backend=small.backend()
    )


module = Module()
trainer = lightning.Trainer(
    accelerator="cpu",
    devices=2,
    strategy=strategy_named(os.environ["STRATEGY"]),
    precision="64-true" if os.environ["STRATEGY"] == "ddp" else None,
    max_epochs=1,
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
trainer.fit(module, torch.utils.data.DataLoader(small.samples(), batch_size=small.PER_RANK))
small.report(module.losses)
torch.distributed.destroy_process_group()
