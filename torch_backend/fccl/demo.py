"""`python -m fccl.demo`: two ranks train by FSDP2 over fccl, and print the loss and the rate of AllReduce.

Under a launcher (torchrun -m fccl.demo) the ranks are the launcher's, on as many hosts as it has.
"""

import os
import sys
import tempfile
import time
from pathlib import Path

RANKS = 2
STEPS = 100
REPORT_EVERY = 25
CALLS = 20
ELEMENTS = 4 << 20  # 16 MiB of float32


def main() -> int:
    """Trains, and returns the exit status."""
    import torch
    import torch.distributed as dist
    import torch.multiprocessing as processes

    torch.set_num_threads(1)
    if "RANK" in os.environ:
        dist.init_process_group("fccl")
        return run_rank()
    with tempfile.TemporaryDirectory() as folder:
        # Forked ranks need not import torch again.
        processes.start_processes(join, (str(Path(folder) / "store"),), nprocs=RANKS, start_method="fork")
    return 0


def join(rank: int, store: str) -> None:
    """One of the ranks that main starts."""
    import torch.distributed as dist

    dist.init_process_group("fccl", init_method=f"file://{store}", rank=rank, world_size=RANKS)
    status = run_rank()
    if status != 0:
        sys.exit(status)


def run_rank() -> int:
    """The exit status of this rank, which is a member of the default group."""
    import torch
    import torch.distributed as dist

    import fccl

    says = dist.get_rank() == 0
    if says:
        print(f"fccl {fccl.version()}, torch {torch.__version__}, {dist.get_world_size()} ranks", flush=True)
    learned = train(says)
    rate, is_right = measure()
    if says:
        print(f"all_reduce of {4 * ELEMENTS >> 20} MiB: {rate:.2f} GB/s (bus bandwidth)", flush=True)
    dist.destroy_process_group()
    if not learned:
        print("fccl.demo: the loss has not fallen to a half", file=sys.stderr)
    if not is_right:
        print("fccl.demo: all_reduce gave a wrong sum", file=sys.stderr)
    return 0 if learned and is_right else 1


def train(says: bool) -> bool:
    """Trains a model to give back what it gets; true if the loss fell to less than half."""
    import torch
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 64))
    fully_shard(model, mesh=init_device_mesh("cpu", (dist.get_world_size(),)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    batches = torch.Generator().manual_seed(1 + dist.get_rank())
    losses = []
    for step in range(1, STEPS + 1):
        batch = torch.randn(32, 64, generator=batches)
        loss = (model(batch) - batch).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
        if says and (step == 1 or step % REPORT_EVERY == 0):
            print(f"step {step:3}  loss {losses[-1]:.3f}", flush=True)
    return losses[-1] < losses[0] / 2


def measure() -> tuple[float, bool]:
    """Bus bandwidth of AllReduce in GB/s as nccl-tests defines it, and whether the sums are right."""
    import torch
    import torch.distributed as dist

    rank, ranks = dist.get_rank(), dist.get_world_size()
    tensor = torch.empty(ELEMENTS)
    fastest = float("inf")
    for _ in range(CALLS):
        tensor.fill_(rank + 1)
        dist.barrier()
        start = time.perf_counter()
        dist.all_reduce(tensor)
        fastest = min(fastest, time.perf_counter() - start)
    is_right = bool((tensor == ranks * (ranks + 1) // 2).all())
    return 4 * ELEMENTS * 2 * (ranks - 1) / ranks / fastest / 1e9, is_right


if __name__ == "__main__":
    sys.exit(main())
