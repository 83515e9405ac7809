"""Times FSDP2 steps on fccl, with arena and without, and on Gloo: torchrun --nproc-per-node 2 fsdp_step.py"""

import argparse
import os
import time
import warnings
from collections.abc import Callable
from statistics import median

import fccl
import torch
import torch.distributed as dist
import torch.nn.functional as F
from fccl.fsdp import AllGather, ReduceScatter
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from transformers import LlamaConfig, LlamaForCausalLM

# What is compared: the backend, and what of fccl the model is given: its arena, its collectives for FSDP2.
SUBJECTS = {
    "fccl": ("fccl", "arena"),
    "fccl.fsdp": ("fccl", "fsdp"),
    "fccl without arena": ("fccl", ""),
    "gloo": ("gloo", ""),
}
CONFIG = LlamaConfig(
    hidden_size=512,
    intermediate_size=1344,
    num_hidden_layers=8,
    num_attention_heads=8,
    vocab_size=32000,
    tie_word_embeddings=False,
    use_cache=False,
)


def training_step(backend: str, uses: str, tokens: torch.Tensor) -> Callable[[], float]:
    """One step of a model of its own, sharded over a group of its own; returns the loss."""
    torch.manual_seed(0)
    model = LlamaForCausalLM(CONFIG)
    mesh = DeviceMesh.from_group(dist.new_group(backend=backend), "cpu")
    for layer in model.model.layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    if uses == "arena":
        fccl.use_arena(model)
    elif uses == "fsdp":
        for module in model.modules():
            if isinstance(module, FSDPModule):
                AllGather(mesh.get_group()).install(module)
                module.set_custom_reduce_scatter(ReduceScatter(mesh.get_group()))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, foreach=True)

    def step() -> float:
        loss = F.cross_entropy(model(tokens).logits.flatten(0, 1), tokens.flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        return loss.item()

    return step


def timed(step: Callable[[], float]) -> tuple[float, float]:
    dist.barrier()
    begin = time.perf_counter()
    loss = step()
    return time.perf_counter() - begin, loss


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=30, help="timed steps of each backend")
    parser.add_argument("--batch", type=int, default=1, help="sequences per rank")
    parser.add_argument("--length", type=int, default=128, help="tokens per sequence")
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore", category=FutureWarning)
    torch.set_num_threads(1)
    processors = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {processors[int(os.environ["LOCAL_RANK"]) % len(processors)]})

    dist.init_process_group("fccl")
    generator = torch.Generator().manual_seed(dist.get_rank())
    tokens = torch.randint(0, CONFIG.vocab_size, (arguments.batch, arguments.length), generator=generator)
    steps = {name: training_step(*subject, tokens) for name, subject in SUBJECTS.items()}
    for step in steps.values():
        step()
    seconds: dict[str, list[float]] = {name: [] for name in SUBJECTS}
    for _ in range(arguments.steps):
        losses = set()
        for name, step in steps.items():
            taken, loss = timed(step)
            seconds[name].append(taken)
            losses.add(round(loss, 3))
        assert len(losses) == 1, f"the backends train differently: losses {losses}"
    if dist.get_rank() == 0:
        parameters = sum(p.numel() for p in LlamaForCausalLM(CONFIG).parameters())
        shape = f"{arguments.batch} x {arguments.length} tokens on each of {dist.get_world_size()} ranks"
        print(f"{parameters / 1e6:.1f} million parameters, {shape}")
        for name, taken in seconds.items():
            print(f"{name}: median {median(taken):.3f} s, fastest {min(taken):.3f} s")
        for name in list(SUBJECTS)[1:]:
            ratios = [other / own for own, other in zip(seconds["fccl"], seconds[name], strict=True)]
            print(f"{name} / fccl: {median(ratios):.2f} (median of {len(ratios)} pairs)")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
