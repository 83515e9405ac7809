"""Times a short call of fccl above torch's own part of it: torchrun --nproc-per-node 2 overheads.py

Torch's part is what the same call takes with torch's backend "fake", which communicates nothing, but copies
what a rank gathers from itself. The ranks need a core
each. The flight recorder of torch 2.15 is in the figures of fccl, unless TORCH_FR_BUFFER_SIZE=0.
"""

import argparse
import gc
import os
import time
from collections.abc import Callable
from statistics import median

import torch
import torch.distributed as dist
from torch.testing._internal.distributed import fake_pg  # noqa: F401  (which registers the name)

BACKENDS = ("fake", "fccl", "fccl alone")
ELEMENTS = 16


def forms(group: dist.ProcessGroup) -> dict[str, Callable[[], object]]:
    """Each form of a call, on a group of any size."""
    rank, size = dist.get_rank(group), dist.get_world_size(group)
    part, whole = torch.ones(ELEMENTS), torch.ones(ELEMENTS * size)
    # Nothing comes of a call of "fake", so each of its ranks can only hear itself.
    root = rank if dist.get_backend(group) == "fake" else 0
    said = [{"step": 1}]
    gather = getattr(dist, "all_gather_single", dist.all_gather_into_tensor)
    scatter = getattr(dist, "reduce_scatter_single", dist.reduce_scatter_tensor)
    direct = {}
    if dist.get_backend(group) == "fccl":
        operator = torch.ops.fccl.all_reduce_.default
        name = group.group_name
        direct = {"torch.ops.fccl.all_reduce_": lambda: operator(part, "sum", name)}
    return direct | {
        "all_reduce": lambda: dist.all_reduce(part, group=group),
        "broadcast": lambda: dist.broadcast(part, group_src=0, group=group),
        "all_gather_single": lambda: gather(whole, part, group=group),
        "reduce_scatter_single": lambda: scatter(part, whole, group=group),
        "all_reduce, wait": lambda: dist.all_reduce(part, group=group, async_op=True).wait(),
        "all_gather_single, wait": lambda: gather(whole, part, group=group, async_op=True).wait(),
        "broadcast_object_list": lambda: dist.broadcast_object_list(said, group_src=root, group=group),
    }


def microseconds(call: Callable[[], object], calls: int) -> float:
    """Microseconds of one call, as the mean of `calls` calls."""
    begin = time.perf_counter_ns()
    for _ in range(calls):
        call()
    return (time.perf_counter_ns() - begin) / calls / 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", type=int, default=40, help="of each form and backend, in turns (40)")
    parser.add_argument("--calls", type=int, default=100, help="of a batch (100)")
    given = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("fccl")
    rank, size = dist.get_rank(), dist.get_world_size()
    alone = [dist.new_group([each]) for each in range(size)][rank]
    groups = {"fake": dist.new_group(backend="fake"), "fccl": dist.group.WORLD, "fccl alone": alone}
    calls = {backend: forms(group) for backend, group in groups.items()}
    taken: dict[tuple[str, str], list[float]] = {}
    gc.disable()
    for batch in range(given.batches + 1):
        for form in calls["fccl"]:
            for backend in BACKENDS:
                # Torch has no such operator: its all_reduce is what it stands in for.
                form_of = form if form in calls[backend] else "all_reduce"
                dist.barrier()
                spent = microseconds(calls[backend][form_of], given.calls)
                if batch > 0:
                    taken.setdefault((form, backend), []).append(spent)
        gc.collect()
    if rank == 0:
        recorder = os.environ.get("TORCH_FR_BUFFER_SIZE", "as torch has it")
        print(f"torch {torch.__version__}, {size} ranks, entries of the flight recorder: {recorder}")
        print(f"{'microseconds, medians':>30} {'fake':>7} {'fccl':>7} {'above':>7} {'1 rank above':>13}")
        for form in calls["fccl"]:
            floor, own, lone = (median(taken[form, backend]) for backend in BACKENDS)
            print(f"{form:>30} {floor:7.2f} {own:7.2f} {own - floor:7.2f} {lone - floor:13.2f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
