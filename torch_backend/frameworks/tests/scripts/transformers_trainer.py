"""Trainer of Transformers on CPU, by --ddp_backend gloo or under Accelerate's SageMaker switches."""

import os
import tempfile

import small
import torch
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments

told = {"use_cpu": True, "ddp_backend": "gloo"}
if "ACCELERATE_USE_SAGEMAKER" in os.environ:
    told = {}
    # A process group that exists is what Accelerate takes.
    if small.backend() == "gloo":
        torch.distributed.init_process_group("gloo")
if os.environ.get("STRATEGY") == "fsdp2":
    told |= {"fsdp": "full_shard", "fsdp_config": {"version": 2}}
torch.manual_seed(0)
shape = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
model = LlamaForCausalLM(LlamaConfig(vocab_size=32, max_position_embeddings=16, **shape)).double()
generator = torch.Generator().manual_seed(1)
text = torch.randint(0, 32, (2 * small.PER_RANK * small.STEPS, 8), generator=generator)
with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(
        output_dir=folder,
        per_device_train_batch_size=small.PER_RANK,
        max_steps=small.STEPS,
        learning_rate=0.01,
        logging_steps=1,
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
        **told,
    )
    trainer = Trainer(model, arguments, train_dataset=[{"input_ids": row, "labels": row} for row in text])
    trainer.train()
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
small.report(losses)
torch.distributed.destroy_process_group()
