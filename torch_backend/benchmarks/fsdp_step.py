"""Times FSDP2 steps on fccl, with arena and without, and on Gloo: torchrun --nproc-per-node 2 fsdp_step.py

A step gains from two causes: the collectives, and buffers whose pages the kernel need not find anew in each
step. "gloo, arena" has its communication buffers where fccl's are, so that only the backend differs from
"fccl". --kept-memory lets the C library keep what is freed, for all alike.
"""

import argparse
import os
import resource
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median

import fccl
import torch
import torch.distributed as dist
import torch.nn.functional as F
from fccl.fsdp import AllGather, ReduceScatter
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.fsdp._fully_shard._fsdp_collectives import (
    ProcessGroupAllocAllGather,
    ProcessGroupAllocReduceScatter,
)
from transformers import LlamaConfig, LlamaForCausalLM

# Each subject: its backend, and the part of fccl that the model gets: the arena or the collectives for FSDP2.
SUBJECTS = {
    "fccl": ("fccl", "arena"),
    "fccl.fsdp": ("fccl", "fsdp"),
    "fccl without arena": ("fccl", ""),
    "gloo": ("gloo", ""),
    "gloo, arena": ("gloo", "arena"),
}
# Read by the C library at a program's start. It maps no memory for a single allocation, gives none back, and
# asks for 64 MiB at once, for all threads together.
KEPT_MEMORY = {
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": str(1 << 40),
    "MALLOC_TOP_PAD_": str(64 << 20),
    "MALLOC_ARENA_MAX": "1",
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


@dataclass
class Taken:
    """Measurements of the timed steps of one subject on this rank."""

    seconds: list[float] = field(default_factory=list)
    faults: list[int] = field(default_factory=list)  # pages that the kernel had to find


def keep_memory() -> None:
    """Begins this program anew with KEPT_MEMORY, unless it has it."""
    if KEPT_MEMORY.items() <= os.environ.items():
        return
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], {**os.environ, **KEPT_MEMORY})


def give(model: LlamaForCausalLM, subject: tuple[str, str], group: dist.ProcessGroup) -> None:
    """Gives a model what its subject says; memory of fccl's arena is that of the default group."""
    if subject == ("fccl", "arena"):
        fccl.use_arena(model)
    for module in (each for each in model.modules() if isinstance(each, FSDPModule)):
        if subject == ("fccl", "fsdp"):
            AllGather(group).install(module)
            module.set_custom_reduce_scatter(ReduceScatter(group))
        elif subject == ("gloo", "arena"):
            module.set_custom_all_gather(ProcessGroupAllocAllGather(dist.group.WORLD))
            module.set_custom_reduce_scatter(ProcessGroupAllocReduceScatter(dist.group.WORLD))


def training_step(subject: tuple[str, str], tokens: torch.Tensor) -> Callable[[], float]:
    """One step of a model of its own, sharded over a group of its own; returns the loss."""
    torch.manual_seed(0)
    model = LlamaForCausalLM(CONFIG)
    mesh = DeviceMesh.from_group(dist.new_group(backend=subject[0]), "cpu")
    for layer in model.model.layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    give(model, subject, mesh.get_group())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, foreach=True)

    def step() -> float:
        loss = F.cross_entropy(model(tokens).logits.flatten(0, 1), tokens.flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        return loss.item()

    return step


def time_step(step: Callable[[], float], taken: Taken) -> float:
    dist.barrier()
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    begin = time.perf_counter()
    loss = step()
    taken.seconds.append(time.perf_counter() - begin)
    taken.faults.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - faults)
    return loss


def print_table(every: dict[str, Taken]) -> None:
    """A ratio is the median of those of the pairs, a step of one and the step of fccl in the same turn."""
    print(f"{'':20}{'median':>9}{'fastest':>10}{'/ fccl':>8}{'page faults a step':>20}")
    for name, taken in every.items():
        pairs = zip(every["fccl"].seconds, taken.seconds, strict=True)
        ratio = median(other / own for own, other in pairs)
        times = f"{median(taken.seconds):7.3f} s{min(taken.seconds):8.3f} s"
        print(f"{name:20}{times}{ratio:8.2f}{median(taken.faults):20.0f}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=30, help="timed steps of each subject")
    parser.add_argument("--batch", type=int, default=1, help="sequences per rank")
    parser.add_argument("--length", type=int, default=128, help="tokens per sequence")
    parser.add_argument(
        "--kept-memory", action="store_true", help="the C library keeps what is freed, for all subjects"
    )
    arguments = parser.parse_args()
    if arguments.kept_memory:
        keep_memory()
    warnings.filterwarnings("ignore", category=FutureWarning)
    torch.set_num_threads(1)
    processors = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {processors[int(os.environ["LOCAL_RANK"]) % len(processors)]})

    dist.init_process_group("fccl")
    generator = torch.Generator().manual_seed(dist.get_rank())
    tokens = torch.randint(0, CONFIG.vocab_size, (arguments.batch, arguments.length), generator=generator)
    steps = {name: training_step(subject, tokens) for name, subject in SUBJECTS.items()}
    for step in steps.values():
        step()
    every = {name: Taken() for name in SUBJECTS}
    for _ in range(arguments.steps):
        losses = {round(time_step(step, every[name]), 3) for name, step in steps.items()}
        assert len(losses) == 1, f"the backends train differently: losses {losses}"
    if dist.get_rank() == 0:
        parameters = sum(p.numel() for p in LlamaForCausalLM(CONFIG).parameters())
        shape = f"{arguments.batch} x {arguments.length} tokens on each of {dist.get_world_size()} ranks"
        print(f"{parameters / 1e6:.1f} million parameters, {shape}, {arguments.steps} steps in turns")
        settings = " ".join(f"{name}={os.environ[name]}" for name in KEPT_MEMORY if name in os.environ)
        print(f"the C library's memory, of all subjects: {settings or 'as it comes'}")
        print_table(every)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
