"""Times collectives of tensors on fccl and on Gloo, in turns: torchrun --nproc-per-node 2 collectives.py"""

import argparse
import os
import time
from collections.abc import Callable
from statistics import median

import torch
import torch.distributed as dist

BACKENDS = ("fccl", "gloo")
COLLECTIVES = ("all_gather", "reduce_scatter", "all_reduce")


def call_of(collective: str, size: int, group: dist.ProcessGroup) -> Callable[[], None]:
    """One call whose larger tensor has `size` bytes of float32; it checks the first element of its result."""
    ranks, rank = dist.get_world_size(), dist.get_rank()
    count = size // 4
    whole = torch.arange(count, dtype=torch.float32).remainder_(251)
    part = torch.full((count // ranks,), float(rank + 1))
    total = ranks * (ranks + 1) / 2

    def all_gather() -> None:
        dist.all_gather_into_tensor(whole, part, group=group)
        assert whole[-1] == ranks

    def reduce_scatter() -> None:
        whole.fill_(rank + 1)
        dist.reduce_scatter_tensor(part, whole, group=group)
        assert part[-1] == total

    def all_reduce() -> None:
        whole.fill_(rank + 1)
        dist.all_reduce(whole, group=group)
        assert whole[-1] == total

    return {"all_gather": all_gather, "reduce_scatter": reduce_scatter, "all_reduce": all_reduce}[collective]


def timed(call: Callable[[], None]) -> float:
    """Seconds on the slowest rank; what a call does to its input first is in them."""
    dist.barrier()
    begin = time.perf_counter()
    call()
    seconds = torch.tensor([time.perf_counter() - begin])
    dist.all_reduce(seconds, dist.ReduceOp.MAX)
    return seconds.item()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bytes", type=int, default=16 << 20, help="of the larger tensor (16 MiB)")
    parser.add_argument("--calls", type=int, default=10, help="timed calls of each backend")
    given = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    groups = {backend: dist.new_group(backend=backend) for backend in BACKENDS}
    for collective in COLLECTIVES:
        calls = {backend: call_of(collective, given.bytes, group) for backend, group in groups.items()}
        seconds: dict[str, list[float]] = {backend: [] for backend in BACKENDS}
        for step in range(given.calls + 2):
            for backend, call in calls.items():
                taken = timed(call)
                if step >= 2:
                    seconds[backend].append(taken)
        if int(os.environ["RANK"]) == 0:
            own, other = (median(seconds[backend]) * 1e3 for backend in BACKENDS)
            print(
                f"{collective:>15}  fccl {own:8.2f} ms  gloo {other:8.2f} ms  gloo / fccl {other / own:.2f}",
                flush=True,
            )
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
