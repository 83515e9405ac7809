"""Ray Train with two workers on CPU; Ray starts them, so this is one process."""

import json
import tempfile
from pathlib import Path

import ray
import small
import torch
from ray import train
from ray.train.torch import TorchConfig, TorchTrainer, prepare_model


def work(places):
    model = prepare_model(small.model())
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.02)
    losses = []
    for step in range(small.STEPS):
        inputs, wanted = small.batch(step, torch.distributed.get_rank())
        loss = (model(inputs) - wanted).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        torch.distributed.all_reduce(mean := loss.detach() / 2)
        losses.append(mean.item())
    said = small.result(losses)
    if torch.distributed.get_rank() == 0:
        Path(places["result"]).write_text(json.dumps(said))


with tempfile.TemporaryDirectory() as folder:
    # Workers find `small` there.
    variables = {"PYTHONPATH": str(Path(small.__file__).parent)}
    ray.init(num_cpus=2, include_dashboard=False, runtime_env={"env_vars": variables})
    result = Path(folder, "result.json")
    trainer = TorchTrainer(
        work,
        train_loop_config={"result": str(result)},
        torch_config=TorchConfig(backend=small.backend()),
        scaling_config=train.ScalingConfig(num_workers=2, use_gpu=False),
        run_config=train.RunConfig(storage_path=folder),
    )
    trainer.fit()
    print("RESULT " + result.read_text(), flush=True)
    ray.shutdown()
