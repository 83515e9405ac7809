"""Times the short calls of a server between its ranks, by fccl and by Gloo, in turns.

./dev cluster 2x1 -- .venv/bin/python torch_backend/benchmarks/latencies.py runs it between two hosts of one
rank; torchrun on one host. Each rank times each of its calls; the figures are those of the slowest rank, in
microseconds. --busy starts as many processes on each host that only compute.
"""

import argparse
import multiprocessing
import os
import time
from collections.abc import Callable

import torch
import torch.distributed as dist

SIZES = (8, 64, 512, 4096)
BACKENDS = ("fccl", "gloo")


def forms(tensor: torch.Tensor, group: dist.ProcessGroup) -> dict[str, Callable[[], object]]:
    return {
        "all_reduce": lambda: dist.all_reduce(tensor, group=group),
        "broadcast": lambda: dist.broadcast(tensor, group_src=0, group=group),
    }


def times_of(call: Callable[[], object], calls: int) -> list[float]:
    """Microseconds of each call, sorted."""
    times = []
    for _ in range(calls):
        begin = time.perf_counter_ns()
        call()
        times.append((time.perf_counter_ns() - begin) / 1e3)
    return sorted(times)


def compute_for_ever() -> None:
    while True:
        pass


def switches() -> int:
    """Voluntary and forced context switches of this rank's threads so far."""
    counts = 0
    for thread in os.listdir("/proc/self/task"):
        with open(f"/proc/self/task/{thread}/status") as status:
            counts += sum(int(line.split()[1]) for line in status if "ctxt_switches" in line)
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=50_000, help="of each form, size and backend (50000)")
    parser.add_argument("--batches", type=int, default=5, help="into which they are cut, in turns (5)")
    parser.add_argument(
        "--busy", type=int, default=0, help="processes beside each rank that only compute (0)"
    )
    given = parser.parse_args()
    spinners = [multiprocessing.Process(target=compute_for_ever, daemon=True) for _ in range(given.busy)]
    for spinner in spinners:
        spinner.start()
    torch.set_num_threads(1)
    dist.init_process_group("fccl")
    groups = {"fccl": dist.group.WORLD, "gloo": dist.new_group(backend="gloo")}
    if dist.get_rank() == 0:
        print(f"{dist.get_world_size()} ranks, {given.busy} busy processes beside each, {given.calls} calls")
        print(f"{'':12}{'bytes':>7}" + "".join(f"{name:>8} p50     p99  switches" for name in BACKENDS))
    for size in SIZES:
        tensor = torch.ones(size // 8, dtype=torch.int64)
        for form in forms(tensor, dist.group.WORLD):
            row = ""
            times = {name: [] for name in BACKENDS}
            switched = dict.fromkeys(BACKENDS, 0)
            for _ in range(given.batches):
                for name in BACKENDS:
                    tensor.fill_(1)
                    call = forms(tensor, groups[name])[form]
                    times_of(call, 100)
                    before = switches()
                    times[name] += times_of(call, given.calls // given.batches)
                    switched[name] += switches() - before
            for name in BACKENDS:
                every = sorted(times[name])
                found = torch.tensor(
                    [every[len(every) // 2], every[len(every) * 99 // 100], switched[name] / len(every)]
                )
                dist.all_reduce(found, op=dist.ReduceOp.MAX)
                row += f"{found[0]:12.1f}{found[1]:8.1f}{found[2]:10.2f}"
            if dist.get_rank() == 0:
                print(f"{form:12}{size:7}{row}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
