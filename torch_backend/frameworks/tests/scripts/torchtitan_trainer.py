"""torchtitan's trainer with its Llama of the smallest size, over FSDP2 on CPU."""

import json
import os
import tempfile
from pathlib import Path

import fccl
import small
import torch
import torch._utils
import torch.distributed as dist
from tokenizers import Tokenizer, models, pre_tokenizers
from torch.distributed.fsdp import FSDPModule
from torch.nn.functional import scaled_dot_product_attention

ENDS = {"bos_token": "<|begin_of_text|>", "eos_token": "<|end_of_text|>"}


def let_it_run_on_a_cpu() -> None:
    """It asks for a GPU's module, some of whose functions a CPU's does not have, and for a later torch."""
    torch._utils._get_available_device_type = lambda: "cpu"
    torch.cpu.set_device = lambda _device: None
    torch.cpu.current_device = lambda: 0
    torch.cpu.get_device_name = lambda *_device: "CPU"
    torch.cpu.memory_stats = lambda *_device: {}
    torch.cpu.reset_peak_memory_stats = torch.cpu.empty_cache = lambda *_device: None
    torch.cpu.get_device_properties = lambda _device: type("Properties", (), {"total_memory": 1 << 30})
    if not hasattr(dist, "set_timeout"):
        dist.set_timeout = lambda timeout, group=None: (group or dist.group.WORLD).set_timeout(timeout)


def sum_without_factors() -> None:
    """Gloo has no PREMUL_SUM, which FSDP2 takes for torchtitan's factor of 1."""
    set_factor = FSDPModule.set_gradient_divide_factor

    def set_factor_and_sum(module: FSDPModule, factor: float) -> None:
        set_factor(module, factor)
        module.set_force_sum_reduction_for_comms(True)

    FSDPModule.set_gradient_divide_factor = set_factor_and_sum


def attend(_attention, *inputs, scale=None, enable_gqa=False, **_others) -> torch.Tensor:
    """In the place of FlexAttention, which has no gradients on a CPU."""
    heads_first = (tensor.transpose(1, 2) for tensor in inputs)
    attended = scaled_dot_product_attention(*heads_first, is_causal=True, scale=scale, enable_gqa=enable_gqa)
    return attended.transpose(1, 2)


def write_assets(folder: Path) -> None:
    """A tokenizer of bytes, and a text."""
    words = [*sorted(pre_tokenizers.ByteLevel.alphabet()), *ENDS.values()]
    tokenizer = Tokenizer(models.BPE(vocab={word: number for number, word in enumerate(words)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.add_special_tokens(list(ENDS.values()))
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps(ENDS))
    (folder / "text").mkdir()
    texts = [f"Sample {number}: " + "the sum of all ranks. " * (3 + number % 5) for number in range(400)]
    lines = [json.dumps({"text": text}) for text in texts]
    (folder / "text" / "train.jsonl").write_text("\n".join(lines))


def trainer_in(folder: Path):
    from torchtitan.models.common.attention import FlexAttention
    from torchtitan.models.llama3.config_registry import llama3_debugmodel

    FlexAttention.forward = attend
    config = llama3_debugmodel()
    config.hf_assets_path, config.dump_folder = str(folder), str(folder / "out")
    config.training.steps, config.training.local_batch_size, config.training.seq_len = small.STEPS, 2, 64
    config.training.disable_cuda_graphs = True
    config.dataloader.dataset_path = str(folder / "text")
    config.parallelism.spmd_backend = "partial_dtensor"
    config.activation_checkpoint = None
    config.debug.seed = 1
    return config.build()


def train(folder: Path) -> None:
    write_assets(folder)
    trainer = trainer_in(folder)
    losses: list[float] = []
    say = trainer.metrics_processor.log

    def note(step: int, loss: float, *others, **named) -> None:
        losses.append(loss)
        say(step, loss, *others, **named)

    trainer.metrics_processor.log = note
    trainer.train()
    small.report(losses)
    trainer.close()


with tempfile.TemporaryDirectory() as name:
    os.environ["HF_HOME"] = name
    let_it_run_on_a_cpu()
    if small.backend() == "gloo":
        sum_without_factors()
    else:
        fccl.set_default()
    train(Path(name))
dist.destroy_process_group()
