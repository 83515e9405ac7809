"""DeepSpeed on CPU with the stage of ZeRO in STAGE."""

import os

import deepspeed
import small
import torch

if small.backend() == "smddp":
    import smdistributed.dataparallel.torch.torch_smddp  # noqa: F401  which makes the name known
deepspeed.init_distributed(dist_backend=small.backend())
stage = int(os.environ["STAGE"])
model = small.model(torch.float32)
config = {
    "train_micro_batch_size_per_gpu": small.PER_RANK,
    "gradient_clipping": 1.0,
    "zero_optimization": {"stage": stage, "stage3_param_persistence_threshold": 0},
    "zero_allow_untested_optimizer": True,
    "zero_force_ds_cpu_optimizer": False,
}
engine, _, _, _ = deepspeed.initialize(
    model=model, optimizer=torch.optim.AdamW(model.parameters(), lr=0.02), config=config
)
losses = []
for step in range(small.STEPS):
    inputs, wanted = small.batch(step, torch.distributed.get_rank(), torch.float32)
    loss = (engine(inputs) - wanted).square().mean()
    engine.backward(loss)
    engine.step()
    torch.distributed.all_reduce(mean := loss.detach() / 2)
    losses.append(mean.item())
small.report(losses)
torch.distributed.destroy_process_group()
